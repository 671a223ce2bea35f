"""What stands in the broker's log: one function for each topic, and what has to be true when it is written.

Sizes are small: segments have their least size, a megabyte, so that a few thousand records fill several.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as OffsetOf

from tests.conformance.broker import KafkaBroker
from tests.conformance.clients import Clients, Message, send
from txnkafka import TopicPartition

__all__ = ["BEGAN", "PARTITIONS", "PROPERTIES", "write_topics"]

BEGAN = 1_700_000_000_000  # of the first record's timestamp
SMALL_SEGMENTS = {"segment.bytes": str(1 << 20)}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_SECONDS = 60
UNTIL_THE_END_MS = 7_200_000  # of a whole run, in which the open transaction is looked at early and late

# What the broker has to be told for these topics.
PROPERTIES = {
    "log.cleaner.backoff.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "log.retention.ms": "-1",  # the records' timestamps are years old
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "transaction.max.timeout.ms": str(UNTIL_THE_END_MS),
    "transaction.partition.verification.enable": "false",  # or nothing could hang
}


def messages(count: int, seed: int, size: int = 4000, *, step_ms: int = 1000) -> Iterator[Message]:
    """Records with keys, some headers, sizes up to ``size`` and timestamps that jump back now and then."""
    rng = random.Random(seed)
    for number in range(count):
        headers = (("trace", rng.randbytes(4)), ("trace", None), ("", b"")) if number % 7 == 0 else ()
        # half of it can be compressed
        value = rng.randbytes(rng.randrange(size) // 2) * 2
        timestamp = BEGAN + step_ms * (number - (rng.randrange(20) if number % 11 == 0 else 0))
        yield Message(b"%d" % (number % 50), value, headers, max(timestamp, BEGAN))


def plain(clients: Clients, _: Path) -> None:
    clients.create("plain", 3, SMALL_SEGMENTS)
    for partition in range(3):
        send(clients.producer(), "plain", messages(700, partition), partition)


def codecs(clients: Clients, _: Path) -> None:
    clients.create("codecs", len(CODECS))
    for partition, codec in enumerate(CODECS):
        send(clients.producer(compression_type=codec), "codecs", messages(200, partition), partition)


def recompressed(clients: Clients, _: Path) -> None:
    """The broker compresses anew what it gets."""
    clients.create("recompressed", 1, {"compression.type": "zstd"})
    send(clients.producer(compression_type="lz4"), "recompressed", messages(200, 1))


def shapes(clients: Clients, _: Path) -> None:
    """Null and empty, and headers of all kinds."""
    clients.create("shapes")
    bodies = (None, b"", b"x", b"\0\xff" * 40_000)
    headers = ((), (("h", b"1"),), (("h", None), ("h", b""), ("h", b"\xff")), (("ü" * 300, b"v" * 3000),))
    found = [Message(key, value, each, BEGAN) for key in bodies[:3] for value in bodies for each in headers]
    send(clients.producer(), "shapes", found)


def append_time(clients: Clients, _: Path) -> None:
    clients.create("append-time", 1, {"message.timestamp.type": "LogAppendTime"})
    for codec in ("none", "lz4"):
        send(clients.producer(compression_type=codec), "append-time", messages(100, 1))


def orders(clients: Clients, _: Path) -> None:
    """Transactional producers and a plain one take turns; each step is on the log before the next."""
    clients.create("orders", 2, SMALL_SEGMENTS)
    rng = random.Random(4)
    plain = clients.producer()
    producers = [clients.transactional(f"orders-{codec}", compression_type=codec) for codec in CODECS]
    begun: set[Producer] = set()
    for step in range(250):
        producer = rng.choice([plain, *producers])
        if producer in begun and rng.random() < 0.3:
            (producer.commit_transaction if rng.random() < 0.6 else producer.abort_transaction)()
            begun.remove(producer)
            continue
        if producer is not plain and producer not in begun:
            producer.begin_transaction()
            begun.add(producer)
        send(producer, "orders", messages(rng.randrange(1, 40), step), rng.randrange(2))
    for producer in begun:
        producer.abort_transaction()


def held(clients: Clients, _: Path) -> None:
    """A transaction stays open, others go on behind it; in partition 1 one is open with nothing behind it."""
    clients.create("held", 3)
    other, plain = clients.transactional("held-other"), clients.producer()
    send(plain, "held", messages(20, 1))
    opened = clients.transactional("held-open", timeout_ms=UNTIL_THE_END_MS)
    opened.begin_transaction()
    for partition in range(2):
        send(opened, "held", messages(10, 2 + partition), partition)
    for end in (other.commit_transaction, other.abort_transaction):
        other.begin_transaction()
        send(other, "held", messages(15, 5))
        end()
    send(plain, "held", messages(20, 6))


def java_producer(clients: Clients, _: Path) -> None:
    clients.create("java")
    clients.produce_with_java("java", 2000, "java-producer", transaction_ms=100)


def compacted(clients: Clients, log_dir: Path) -> None:
    """Keys that come again, tombstones, transactions of both outcomes; then the cleaner. The first record
    stays: otherwise the number of the cleaner's passes decides whether the first segment is ``emptied``."""
    always = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
    clients.create("compacted", 1, SMALL_SEGMENTS | always)
    producer = clients.transactional("compacted")
    for turn in range(12):
        producer.begin_transaction()
        found = [each._replace(value=None) if turn % 4 == 3 else each for each in messages(150, turn)]
        if turn == 0:
            found[0] = found[0]._replace(key=b"stays")
        send(producer, "compacted", found)
        (producer.abort_transaction if turn % 3 == 1 else producer.commit_transaction)()
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    active = max(int(path.stem) for path in (log_dir / "compacted-0").glob("*.log"))
    _wait_for(f"compacted 0 {active}", checkpoint)


def emptied(clients: Clients, log_dir: Path) -> None:
    """One key, each record in a segment of its own, too large for the cleaner to join two: it empties the
    first segment and keeps it."""
    always = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
    clients.create("emptied", 1, SMALL_SEGMENTS | always)
    producer = clients.producer()
    for number in range(3):
        value = random.Random(number).randbytes(600_000)
        send(producer, "emptied", [Message(b"k", value, (), BEGAN + 1000 * number)])
    _wait_for("emptied 0 2", log_dir / "cleaner-offset-checkpoint")


def deleted(clients: Clients, log_dir: Path) -> None:
    """DeleteRecords into the middle of a batch and of an aborted transaction."""
    clients.create("deleted", 2, SMALL_SEGMENTS)
    send(clients.producer(), "deleted", messages(600, 1), 0)
    producer = clients.transactional("deleted")
    producer.begin_transaction()
    send(producer, "deleted", messages(60, 1), 1)
    producer.abort_transaction()
    send(clients.producer(), "deleted", messages(20, 9), 1)
    for partition, before in enumerate((433, 41)):
        _delete_records(clients, log_dir, TopicPartition("deleted", partition), before)


def headless(clients: Clients, log_dir: Path) -> None:
    """DeleteRecords into the middle of an open transaction. Spark's source refuses such a topic: the last
    stable offset that the broker tells it lies below the log start."""
    clients.create("headless")
    producer = clients.transactional("headless")
    producer.begin_transaction()
    send(producer, "headless", messages(60, 1))
    _delete_records(clients, log_dir, TopicPartition("headless", 0), 17)


def hang(clients: Clients, _: Path) -> None:
    """A hanging transaction in partition 0 with data behind it."""
    clients.create("hang", 2)
    send(clients.producer(), "hang", messages(5, 1))
    clients.leave_hanging(TopicPartition("hang", 0), TopicPartition("hang", 1), "late")
    send(clients.producer(), "hang", messages(10, 2))


def groups(clients: Clients, _: Path) -> None:
    """Offsets that groups commit: as consumers do, and in transactions that end in every way."""
    address = {"bootstrap.servers": clients.bootstrap_servers, "log_level": 0}
    for group in ("billing", "audit"):
        consumer = Consumer({**address, "group.id": group, "enable.auto.commit": False})
        offsets = [OffsetOf("orders", 0, 7, f"by {group}"), OffsetOf("orders", 1, 9), OffsetOf("plain", 2, 3)]
        consumer.commit(offsets=offsets, asynchronous=False)
        for outcome, offset in (("commit", 11), ("abort", 12), ("open", 13)):
            producer = clients.transactional(f"{group}-{outcome}")
            producer.begin_transaction()
            wanted = [OffsetOf("orders", 1, offset), OffsetOf("held", 0, offset)]
            producer.send_offsets_to_transaction(wanted, consumer.consumer_group_metadata(), WAIT_SECONDS)
            if outcome != "open":
                (producer.commit_transaction if outcome == "commit" else producer.abort_transaction)()
        consumer.close()


def _delete_records(clients: Clients, log_dir: Path, which: TopicPartition, before: int) -> None:
    clients.delete_records(which, before)
    _wait_for(f"{which.topic} {which.partition} {before}", log_dir / "log-start-offset-checkpoint")


def _wait_for(line: str, file: Path) -> None:
    """Until the broker has written this line into one of its checkpoint files."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not file.exists() or line not in file.read_text().splitlines():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{file} does not say {line!r}: {file.exists() and file.read_text()}")
        time.sleep(0.1)


WRITERS: tuple[Callable[[Clients, Path], None], ...] = (
    plain,
    codecs,
    recompressed,
    shapes,
    append_time,
    orders,
    held,
    java_producer,
    compacted,
    emptied,
    deleted,
    headless,
    hang,
    groups,
)
# of the topics that Spark's source can read
PARTITIONS = {
    "append-time": 1,
    "codecs": 5,
    "compacted": 1,
    "deleted": 2,
    "hang": 2,
    "held": 3,
    "java": 1,
    "orders": 2,
    "plain": 3,
    "recompressed": 1,
    "shapes": 1,
}


def write_topics(kafka: KafkaBroker, clients: Clients) -> None:
    """All of them."""
    for write in WRITERS:
        write(clients, kafka.log_dir)
