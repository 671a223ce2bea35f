"""A data directory goes from Kafka to us and back: each takes over what the other has left, stopped or
killed.

Every time the broker has it, Kafka's own consumer reads all of it, DescribeProducers tells who is known, and
producers go on where they were. One story, told in order.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient
from kafka import TopicPartition as Asked
from kafka.admin import AbortTransactionSpec

from tests.conformance.author import CODECS, EPOCH, Author
from tests.conformance.broker import KafkaBroker
from tests.conformance.clients import Clients
from tests.conformance.crashed import crashed
from tests.conformance.kafka_log import compiled
from tests.conformance.wire import Wire
from tests.conformance.written import Marker, Record
from txnkafka import LogDir, TopicPartition
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.data_directory import DataDirectory

PROPERTIES = {"log.retention.ms": "-1", "transaction.partition.verification.enable": "false"}
SMALL = LogConfig(
    segment_bytes=3000,
    index_interval_bytes=200,
    retention_ms=-1,
    file_delete_delay_ms=0,
    transaction_partition_verification_enable=False,
)
CODEC, IDEMPOTENT, TRANSACTIONS, OPENED, CUT, DELETED, EMPTY, MIXED = range(8)
CRASHES = 8
CONFIGS = {
    "ours": SMALL,
    "crashed": SMALL,
    "stamped": replace(SMALL, message_timestamp_type="LogAppendTime"),
    "compacted": replace(SMALL, cleanup_policy="compact", min_cleanable_dirty_ratio=0.0),
}
# as far as Kafka has to know; what it would compact itself is for us to compact
KAFKA_CONFIGS = {
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact", "min.compaction.lag.ms": str(1 << 60)},
}
TOPICS = {"ours": 8, "stamped": 1, "crashed": CRASHES, "compacted": 1}
LEVELS = ("read_committed", "read_uncommitted")

Authors = dict[TopicPartition, Author]
Described = dict[TopicPartition, list[tuple[int, ...]]]


def opened(kafka: KafkaBroker) -> LogManager:
    """The broker's directory, while it is stopped."""
    directory = LogManager(DataDirectory(
        LocalDataFiles(),
        str(kafka.log_dir),
        lambda topic: CONFIGS[topic],
        now_ms=SystemClock().now_ms(),
    ))
    assert directory.data.refused == {}
    return directory


# What is written


def write_codecs(author: Author, _: LogManager) -> None:
    """All codecs, many small segments."""
    for number in range(120):
        author.send(count=1 + number % 5, codec=CODECS[number % 5])
    assert len(author.log.segments) > 3


def write_idempotent(author: Author, _: LogManager) -> None:
    for number in range(40):
        author.send((-1, 100, 101, 102)[number % 4], codec=CODECS[number % 3])


def write_transactions(author: Author, _: LogManager) -> None:
    """Committed and aborted ones that overlap, over several segments, others between them."""
    for number in range(12):
        for producer_id in (200, 201, 202, -1):
            author.send(producer_id, transactional=producer_id >= 0, codec=CODECS[number % 5])
        author.end(200 + number % 3, commit=number % 2 == 0)
    for producer_id in (200, 201, 202):
        author.send(producer_id, transactional=True)
        author.end(producer_id, commit=producer_id == 201)


def write_opened(author: Author, _: LogManager) -> None:
    """A transaction that stays open, with decided ones and others behind it."""
    author.send()
    author.send(300, transactional=True)
    for number in range(20):
        author.send(301, transactional=True)
        author.end(301, commit=number % 2 == 0)
        author.send()


def write_cut(author: Author, directory: LogManager) -> None:
    """Cut inside a transaction that had ended, and continued."""
    write_transactions(author, directory)
    middle = author.written.end // 2
    author.cut(
        lambda offset: directory.truncate(author.partition, offset, now_ms=SystemClock().now_ms()), middle
    )
    author.send()
    author.send(202, transactional=True)


def write_deleted(author: Author, directory: LogManager) -> None:
    """DeleteRecords to the middle of a batch of an aborted transaction."""
    write_transactions(author, directory)
    author.log.flush()
    author.written.start = author.written.end // 2 + 1
    directory.delete_records(author.partition, author.written.start)
    directory.maintain(SystemClock().now_ms())
    assert author.log.segments[0].base_offset > 0


def write_nothing(author: Author, _: LogManager) -> None:
    pass


def write_mixed(author: Author, directory: LogManager) -> None:
    write_idempotent(author, directory)
    write_transactions(author, directory)
    author.send(400, transactional=True)
    author.send(401, transactional=True)


WRITERS = {
    CODEC: write_codecs,
    IDEMPOTENT: write_idempotent,
    TRANSACTIONS: write_transactions,
    OPENED: write_opened,
    CUT: write_cut,
    DELETED: write_deleted,
    EMPTY: write_nothing,
    MIXED: write_mixed,
}


# What is compared


def check_served(
    kafka: KafkaBroker, authors: Authors, producers: Mapping[TopicPartition, list[ProducerStateEntry]]
) -> None:
    """The broker has said nothing about the partitions, serves all records, and knows the same producers."""
    bad = [line for line in kafka.said() if (" WARN " in line or " ERROR " in line) and _names_one(line)]
    assert bad == []
    check_consumed(kafka, authors)
    assert described(kafka, authors) == {each: sorted(map(_told, producers[each])) for each in authors}


def check_consumed(kafka: KafkaBroker, authors: Authors) -> None:
    """Kafka's own consumer gets exactly what was written."""
    found = consumed(kafka)
    for partition, author in authors.items():
        for level in LEVELS:
            assert found.get((level, partition), []) == author.written.consumed(level), (level, partition)


def _names_one(line: str) -> bool:
    return any(f"{topic}-" in line for topic in TOPICS)


def consumed(kafka: KafkaBroker) -> dict[tuple[str, TopicPartition], list[Record]]:
    """What Kafka's own consumer gets, by isolation level and partition."""
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += ["-cp", compiled(), "Consume", kafka.bootstrap_servers, *TOPICS]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    found: dict[tuple[str, TopicPartition], list[Record]] = {}
    for line in text.splitlines():
        level, topic, partition, offset, timestamp, kind, key, value, *headers = line.split(" ")
        pairs = zip(map(_bytes, headers[::2]), map(_bytes, headers[1::2]), strict=True)
        record = Record(
            int(offset), int(timestamp), kind, _bytes(key), _bytes(value),
            tuple((str(name or b"", "utf-8"), content) for name, content in pairs),
        )  # fmt: skip
        found.setdefault((level, TopicPartition(topic, int(partition))), []).append(record)
    return found


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text[1:])


def described(kafka: KafkaBroker, authors: Authors) -> Described:
    """DescribeProducers."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    try:
        found = admin.describe_producers([Asked(*each) for each in authors])
    finally:
        admin.close()
    return {
        TopicPartition(*each): sorted(map(tuple, state.active_producers)) for each, state in found.items()
    }


def _told(entry: ProducerStateEntry) -> tuple[int, ...]:
    return (
        entry.producer_id,
        entry.producer_epoch,
        entry.last_sequence,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


# The story


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker with empty topics, stopped."""
    with KafkaBroker(tmp_path_factory.mktemp("round-trip"), PROPERTIES) as broker:
        clients = Clients(broker)
        for topic, partitions in TOPICS.items():
            clients.create(topic, partitions, KAFKA_CONFIGS.get(topic))
        clients.close()
        broker.stop()
        yield broker


def all_producers(directory: LogManager) -> dict[TopicPartition, list[ProducerStateEntry]]:
    return {each: log.producers.entries() for each, log in directory.logs.items()}


def go_on(author: Author) -> None:
    """The same producers write on, transactions that were open end, others begin."""
    number = author.partition.partition
    author.send(codec=CODECS[number % 5])
    author.send(100)
    for producer_id in (200, 201, 202, 300, 400):
        if author.is_open(producer_id):
            author.end(producer_id, commit=number % 2 == 0)
    author.send(200, transactional=True)
    author.send(300, transactional=True)
    author.end(200, commit=number % 3 == 0)


def go_on_at(kafka: KafkaBroker, authors: Authors) -> None:
    """All authors write through the broker; it knows what they have sent last, too."""
    wire = Wire(kafka.bootstrap_servers)
    for partition, author in authors.items():
        if partition.topic != "stamped":  # whose times only the broker knows
            author.to(wire)
            author.check_sequences()
            go_on(author)
    wire.close()


def go_on_here(directory: LogManager, authors: Authors) -> None:
    """All authors write through us; every second log begins a new segment."""
    for partition, author in authors.items():
        author.to(directory.logs[partition])
        if author.check_sequences() and partition.partition % 2:
            author.log.roll(SystemClock().now_ms())
        go_on(author)


def taken_over(kafka: KafkaBroker, authors: Authors, known: Described) -> LogManager:
    """What the broker has left, with everything that it knew."""
    directory = opened(kafka)
    for partition, author in authors.items():
        log = directory.logs[partition]
        assert (log.log_start_offset, log.log_end_offset) == (author.written.start, author.written.end)
        assert sorted(map(_told, log.producers.entries())) == known[partition], partition
    return directory


def test_back_and_forth(kafka: KafkaBroker) -> None:
    directory = opened(kafka)
    authors, producers = write_all(directory)
    directory.close()
    add_crashed(kafka, authors, producers)
    kafka.start()
    check_served(kafka, authors, producers)

    go_on_at(kafka, authors)
    known = described(kafka, authors)
    kafka.stop()
    directory = taken_over(kafka, authors, known)
    assert directory.data.repairs == []
    go_on_here(directory, authors)
    shorten(directory, authors[TopicPartition("ours", MIXED)])
    producers = all_producers(directory)
    directory.close()
    kafka.start()
    check_served(kafka, authors, producers)

    go_on_at(kafka, authors)
    known = described(kafka, authors)
    kafka.kill()
    directory = taken_over(kafka, authors, known)
    go_on_here(directory, authors)
    producers = all_producers(directory)
    killed(directory)
    kafka.start()
    check_served(kafka, authors, producers)
    abort_hanging(kafka, authors)


def write_all(directory: LogManager) -> tuple[Authors, dict[TopicPartition, list[ProducerStateEntry]]]:
    """Every partition but those that will be replaced."""
    authors = {
        each: Author(each, log_append_time=each.topic == "stamped", keyed=each.topic == "compacted")
        for each in directory.logs
    }
    for partition, author in authors.items():
        author.to(directory.logs[partition])
        if partition.topic == "ours":
            WRITERS[partition.partition](author, directory)
        elif partition.topic == "stamped":
            write_transactions(author, directory)
        elif partition.topic == "compacted":
            write_mixed(author, directory)
            compact(author, directory)
    return authors, all_producers(directory)


def add_crashed(
    kafka: KafkaBroker, authors: Authors, producers: dict[TopicPartition, list[ProducerStateEntry]]
) -> None:
    """Crash images after our recovery take the places of empty logs."""
    for partition in [each for each in authors if each.topic == "crashed"]:
        found = crashed(partition, partition.partition, SMALL)
        found.put(kafka.log_dir / str(partition))
        authors[partition], producers[partition] = found.author, found.producers


def compact(author: Author, directory: LogManager) -> None:
    """Run the cleaner: fewer records, the same last values."""
    directory.flush()
    before, count = author.written.latest(), len(author.written.consumed("read_uncommitted"))
    assert directory.clean(SystemClock().now_ms()) is not None
    view = LogDir(directory.data.path).partition(*author.partition)
    author.written.keep({record.offset for record in view.records(isolation_level="read_uncommitted")})
    assert author.written.latest() == before
    assert len(author.written.consumed("read_uncommitted")) < count


def shorten(directory: LogManager, author: Author) -> None:
    """DeleteRecords in a log that Kafka has written to."""
    author.log.flush()
    author.written.start = author.written.end - 20
    directory.delete_records(author.partition, author.written.start)
    directory.maintain(SystemClock().now_ms())


def killed(directory: LogManager) -> None:
    """Nothing is closed; the system gives back the lock of a process that ends. What was appended is durable:
    a segment that no flush has named would be lost (DIVERGENCES.md)."""
    directory.flush()
    directory.data.abandon()


def abort_hanging(kafka: KafkaBroker, authors: Authors) -> None:
    """Transactions that nobody will end are ended as operators do it; then all is decided."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    for partition, author in authors.items():
        for producer_id in (200, 201, 202, 300, 301, 400, 401):
            if author.is_open(producer_id):
                admin.abort_transaction(AbortTransactionSpec(Asked(*partition), producer_id, EPOCH, 1))
                author.written.add(Marker(author.written.end, producer_id, False))
    admin.close()
    check_consumed(kafka, authors)
