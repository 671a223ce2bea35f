"""Examples at the end of ``txnkafka COMMAND --help``, and the hint after "interrupted"."""

from __future__ import annotations

from typing import Final, NamedTuple


class Example(NamedTuple):
    """A command line and its purpose."""

    command: str
    purpose: str


EXAMPLES: Final[dict[str, tuple[Example, ...]]] = {
    "ls": (
        Example("txnkafka ls /var/lib/kafka/data", "partitions, with their first and last offsets"),
        Example("txnkafka ls orders-0 --segments", "the segments of one partition"),
    ),
    "cat": (
        Example("txnkafka cat /var/lib/kafka/data --topic orders -n 10", "the first ten committed records"),
        Example(
            "txnkafka cat orders-0 --isolation-level read_uncommitted --start-offset 1000",
            "all records from offset 1000 on, including aborted and open transactions",
        ),
    ),
    "dump": (
        Example("txnkafka dump orders-0/00000000000000000000.log", "the batches of a segment"),
        Example(
            "txnkafka dump __transaction_state-7/*.log --records --format jsonl",
            "the transaction coordinator's records",
        ),
    ),
    "verify": (
        Example("txnkafka verify /backup/kafka", "check whether a copy is sound"),
        Example("txnkafka verify /backup/kafka --topic 'orders*' --format jsonl", "findings for a program"),
    ),
    "repair": (
        Example("txnkafka repair /var/lib/kafka/data --dry-run", "list the changes without making them"),
        Example("txnkafka repair /var/lib/kafka/data", "recover after a crash"),
    ),
    "handover": (
        Example("txnkafka handover data --to kafka --check", "check that Apache Kafka may start on it"),
        Example("txnkafka handover data --to kafka", "make it ready, and print how to start Kafka on it"),
    ),
    "lso": (
        Example("txnkafka lso /var/lib/kafka/data --topic orders", "why consumers of orders do not advance"),
        Example("txnkafka lso /backup/kafka --now 2026-01-31T12:00:00Z", "judged at the time of the copy"),
    ),
    "show": (
        Example("txnkafka show /var/lib/kafka/data", "the status of every offset"),
        Example("txnkafka show orders-0 --format json", "the same, with the offsets of each cell"),
    ),
    "txns": (
        Example("txnkafka txns /var/lib/kafka/data --state Ongoing", "open transactions"),
        Example("txnkafka txns /backup/kafka --transactional-id billing-0", "one id, with its partitions"),
    ),
    "groups": (
        Example("txnkafka groups /var/lib/kafka/data", "lags, and the transaction that each group waits for"),
        Example("txnkafka groups /backup/kafka --group ledger --format json", "one group, for a program"),
        Example("txnkafka groups --bootstrap 127.0.0.1:9092", "the groups of a cluster, with their members"),
        Example(
            "txnkafka groups -b 127.0.0.1:9092 --group ledger --reset-offsets --to-earliest --dry-run",
            "the offsets from which a group would read everything again",
        ),
    ),
    "stats": (
        Example("txnkafka stats /var/lib/kafka/data", "sizes, codecs and abort rates of each partition"),
        Example("txnkafka stats /var/lib/kafka/data --topic orders --by producer", "the same by producer"),
    ),
    "export": (
        Example(
            "txnkafka export /backup/kafka --topic orders --to parquet --output orders.parquet",
            "the committed records as Parquet",
        ),
        Example(
            "txnkafka export /backup/kafka --topic orders --to delta --output lake/orders --incremental",
            "add the records since the last run",
        ),
    ),
    "serve": (
        Example("txnkafka serve --data data --listen 127.0.0.1:9092 --create-topic orders:3", "a broker"),
        Example(
            "txnkafka serve --data data --config num.partitions=4 --metrics 127.0.0.1:9404",
            "with a Kafka setting, and metrics for Prometheus",
        ),
        Example("txnkafka serve --data data --resolve", "with transactional messages that are checked back"),
    ),
    "produce": (
        Example("txnkafka produce orders --data data < orders.txt", "each line is a record"),
        Example(
            "txnkafka produce orders -K : --transactional-id import -b 127.0.0.1:9092",
            "lines with keys (anna:a book), all or none of them",
        ),
        Example("txnkafka produce pictures cat.png dog.png -b 127.0.0.1:9092", "each file is a record"),
    ),
    "consume": (
        Example("txnkafka consume orders -b 127.0.0.1:9092", "the values of all records, and of new ones"),
        Example("txnkafka consume orders --data data -e -J", "all records as JSON lines"),
        Example(
            "txnkafka consume orders -o -10 -c 10 -f '%p %o %k %s\\n' -b 127.0.0.1:9092",
            "the last ten records of a partition, with partition, offset and key",
        ),
        Example("txnkafka consume -G ledger orders bills -b 127.0.0.1:9092", "as a member of a group"),
    ),
    "topics": (
        Example("txnkafka topics list --bootstrap 127.0.0.1:9092", "the topics of a cluster"),
        Example("txnkafka topics describe orders --data data", "partitions, offsets and settings of a topic"),
        Example(
            "txnkafka topics create orders --partitions 3 --config retention.ms=3600000 --data data",
            "a topic in a data directory, which is created if it is missing",
        ),
        Example("txnkafka topics alter orders --partitions 6 -b 127.0.0.1:9092", "more partitions"),
        Example("txnkafka topics delete orders -b 127.0.0.1:9092", "delete a topic with its records"),
    ),
    "txn": (
        Example("txnkafka txn list --state Ongoing -b 127.0.0.1:9092", "open transactions"),
        Example("txnkafka txn describe billing-0 -b 127.0.0.1:9092", "one id, with its partitions"),
        Example("txnkafka txn describe-producers --topic orders --data data", "the producers of a topic"),
        Example("txnkafka txn find-hanging -b 127.0.0.1:9092", "transactions that block consumers for good"),
        Example(
            "txnkafka txn abort --topic orders --partition 0 --start-offset 1200 -b 127.0.0.1:9092",
            "end one of them",
        ),
        Example("txnkafka txn fence billing-0 -b 127.0.0.1:9092", "abort its transaction, stop its producer"),
    ),
    "halves": (
        Example("txnkafka halves list --older-than 60 -b 127.0.0.1:9092", "messages without a decision"),
        Example("txnkafka halves show 5f0c2d9be41b4f0a8c3c7a9d1f6e2b70 --data data", "one, with its records"),
        Example("txnkafka halves decide 5f0c2d9be41b4f0a8c3c7a9d1f6e2b70 commit --data data", "decide it"),
        Example("txnkafka halves resume 5f0c2d9be41b4f0a8c3c7a9d1f6e2b70 --data data", "check it again"),
        Example("txnkafka halves park 5f0c2d9be41b4f0a8c3c7a9d1f6e2b70 --data data", "end its checks"),
    ),
    "resolve": (
        Example("txnkafka resolve -b 127.0.0.1:9092", "transactional messages of a cluster"),
        Example(
            "txnkafka resolve -X transaction.check.interval=5000 -b 127.0.0.1:9092",
            "with a check of each undecided message every five seconds",
        ),
    ),
    "perf": (
        Example("txnkafka perf produce orders --data data", "records a second into a data directory"),
        Example(
            "txnkafka perf produce orders --transactional-id perf --record-size 1000 -b 127.0.0.1:9092",
            "in a transaction for each 1,000 records",
        ),
        Example("txnkafka perf consume orders -b 127.0.0.1:9092 --format json", "how fast they are read"),
        Example("txnkafka perf transactions orders --count 500 --data data", "latency of small transactions"),
    ),
    "simulate": (
        Example("txnkafka simulate --seed 1 --seeds 20 --processes 2", "twenty seeds, two at a time"),
        Example("txnkafka simulate --seed 17 --events 100000", "one seed, for longer"),
    ),
    "spark": (
        Example("txnkafka spark verify /backup/broker-1 /backup/broker-2", "check a backup on all cores"),
        Example("txnkafka spark transactions /backup --show hanging", "transactions without an end"),
        Example(
            "txnkafka spark transactions /backup --show by-id --format jsonl", "sums by transactional id"
        ),
        Example(
            "txnkafka spark copy /backup --topic orders --to /data/new --partitions 12 --compression zstd",
            "the committed records of a topic in a new log with other partitions",
        ),
        Example(
            "txnkafka spark copy /backup --rename orders=sold -b 127.0.0.1:9092 --staging /shared",
            "into a cluster, under another name",
        ),
    ),
    "spark-bundle": (
        Example("spark-submit $(txnkafka spark-bundle) job.py", "run a job with txnkafka on the executors"),
        Example("txnkafka spark-bundle -o txnkafka.tar.gz", "write only the archive"),
    ),
    "vacuum": (
        Example("txnkafka vacuum /data/kafka.staging", "list the files of killed tasks"),
        Example("txnkafka vacuum /data/kafka.staging --older-than 12h --remove", "remove them"),
    ),
    "docs": (
        Example("txnkafka docs", "list the pages"),
        Example("txnkafka docs lso | less", "the meaning of lso's verdicts"),
    ),
}

AFTER_INTERRUPTION: Final = {
    "export": "the same command goes on where this one stopped",
    "repair": "the same command goes on where this one stopped",
    "handover": "run the same command again before another broker starts on the directory",
    "spark-bundle": "no bundle was written",
    "vacuum": "files that were listed with --remove are gone; the same command removes the others",
    "produce": "records that were sent stay, unless they are in a transaction (--transactional-id)",
    "groups": "requests of --reset-offsets and --delete that were sent may still take effect",
}
"""For commands that write; the others change nothing."""
