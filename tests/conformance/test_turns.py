"""A data directory goes from our broker to Apache Kafka and back, three times, and ten times with
TXNKAFKA_LONG=1, with a hand-over at each turn.

Each owner writes with idempotent and transactional producers, and leaves a transactional id in every state
that a stop can leave: Empty, Ongoing, PrepareCommit, PrepareAbort (between these records and the markers an
owner has died), CompleteCommit, CompleteAbort; Dead is never in the log. After each start the owner's
consumer, and after each stop our reader of files, finds what was committed and nothing else; groups have
their offsets; and no producer id has two owners.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Where

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving
from txnkafka import LogDir, TopicPartition
from txnkafka._core.encode import encode_batch
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import HandOver, Owner
from txnkafka.logdir import PartitionView
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.wire.records import TransactionState
from txnkafka.wire.records.transaction_bytes import encode_transaction_key, encode_transaction_value

ROUNDS = 10 if os.environ.get("TXNKAFKA_LONG") else 3
SECONDS = 60
TOPIC, PARTITIONS = "t", 2
INTERNAL = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}
S = TransactionState
FILES = LocalDataFiles()


@dataclass
class Story:
    """What was written so far: the committed values, those that a decided transaction will show, the offsets
    of groups, and the transactional ids with the state they were left in."""

    committed: list[bytes] = field(default_factory=list)
    decided: list[bytes] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    left_open: list[str] = field(default_factory=list)
    owners: dict[int, str] = field(default_factory=dict)
    largest_given: int = -1


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Not running; its directory is that of our broker."""
    broker = KafkaBroker(tmp_path, INTERNAL, is_static=True)
    yield broker
    broker.stop()


@contextmanager
def owned(kafka: KafkaBroker, owner: Owner) -> Iterator[str]:
    """The address of the directory's owner, who stops cleanly in the end."""
    if owner is Owner.KAFKA:
        kafka.start()
        yield kafka.bootstrap_servers
        kafka.stop()
        return
    settings = [option for item in INTERNAL.items() for option in ("--config", "=".join(item))]
    with Serving(kafka.log_dir, "--create-topic", f"{TOPIC}:{PARTITIONS}", *settings) as serving:
        yield serving.address
        assert serving.stop() == 0


def producer(server: str, transactional_id: str | None = None) -> Producer:
    options: dict[str, str | int | bool] = {"bootstrap.servers": server, "log_level": 0}
    if transactional_id is None:
        return Producer({**options, "enable.idempotence": True})
    found = Producer({**options, "transactional.id": transactional_id, "transaction.timeout.ms": 900_000})
    found.init_transactions(SECONDS)
    return found


def write(client: Producer, *values: bytes) -> None:
    for number, value in enumerate(values):
        client.produce(TOPIC, value, partition=number % PARTITIONS)
    assert client.flush(SECONDS) == 0


def transaction(server: str, name: str, *values: bytes) -> Producer:
    """A transaction with these values that is not ended."""
    client = producer(server, name)
    client.begin_transaction()
    write(client, *values)
    return client


def consumer(server: str, group: str, level: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": server, "group.id": group, "isolation.level": level, "log_level": 0,
            "enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 10,
        }
    )  # fmt: skip


def consumed(server: str) -> list[bytes]:
    """What the owner's consumer gets, sorted."""
    client, found, ended = consumer(server, "reader"), list[bytes](), 0
    client.assign([Where(TOPIC, number, 0) for number in range(PARTITIONS)])
    while ended < PARTITIONS:
        message = client.poll(SECONDS)
        assert message is not None, "nothing comes any more"
        if message.error():
            ended += 1
        else:
            found.append(message.value() or b"")
    client.close()
    return sorted(found)


def offset_of(server: str, group: str) -> int:
    client = consumer(server, group)
    try:
        (found,) = client.committed([Where(TOPIC, 0)], SECONDS)
        return int(found.offset)
    except KafkaException:  # the coordinator is loading
        return -2
    finally:
        client.close()


def until(condition: object, expected: object) -> None:
    """Wait until a function returns what is expected."""
    deadline = time.monotonic() + SECONDS
    while (found := condition()) != expected:  # type: ignore[operator]
        assert time.monotonic() < deadline, (found, expected)
        time.sleep(0.2)


def work(server: str, story: Story, turn: int) -> None:
    """The traffic of one owner. The transactions that stay open come last, so that they hide nothing."""
    for name in story.left_open:  # a new instance aborts what the one before it has left
        producer(server, name)
        story.states[name] = "Empty"
    story.left_open = []
    write(producer(server), *_values(story, turn, f"idempotent {turn}"))
    committing = transaction(server, "commits", *_values(story, turn, "commits"))
    commit_offset(server, committing, "copies", turn)
    committing.commit_transaction(SECONDS)
    story.offsets["copies"] = turn
    aborting = transaction(server, "aborts", b"aborts|%d|never" % turn)
    aborting.abort_transaction(SECONDS)
    producer(server, f"empty {turn}")
    member = consumer(server, "plain")
    member.commit(offsets=[Where(TOPIC, 0, turn)], asynchronous=False)
    member.close()
    story.offsets["plain"] = turn
    story.states |= {"commits": "CompleteCommit", "aborts": "CompleteAbort", f"empty {turn}": "Empty"}
    decided = [b"decided %d|%d|%d" % (turn, turn, i) for i in range(2)]
    prepared = transaction(server, f"decided {turn}", *decided)
    commit_offset(server, prepared, "decided", turn)
    story.decided = decided
    doomed = transaction(server, f"doomed {turn}", b"doomed %d|%d|never" % (turn, turn))
    left = transaction(server, f"open {turn}", b"open %d|%d|never" % (turn, turn))
    story.left_open = [f"open {turn}"]
    story.states |= {f"decided {turn}": "Ongoing", f"doomed {turn}": "Ongoing", f"open {turn}": "Ongoing"}
    del prepared, doomed, left  # nobody hears of them any more


def _values(story: Story, turn: int, owner: str) -> list[bytes]:
    values = [f"{owner}|{turn}|{i}".encode() for i in range(3)]
    story.committed += values
    return values


def commit_offset(server: str, client: Producer, group: str, offset: int) -> None:
    member = consumer(server, group)
    client.send_offsets_to_transaction([Where(TOPIC, 0, offset)], member.consumer_group_metadata(), SECONDS)
    member.close()


def decide(path: str, states: dict[str, TransactionState]) -> None:
    """Write the coordinator's decisions, as an owner does that dies before the first marker."""
    found = LogDir(path).coordinator
    config = LogConfig(cleanup_policy="compact", producer_id_expiration_ms=(1 << 63) - 1)
    now_ms = SystemClock().now_ms()
    directory = DataDirectory(FILES, path, lambda _: config, now_ms=now_ms)
    for name, state in states.items():
        before = found.transactions[name]
        after = before._replace(
            state=state, producer_epoch=before.producer_epoch + 1, last_producer_epoch=-1
        )
        key, value = encode_transaction_key(name), encode_transaction_value(after, 1)
        log = directory.logs[TopicPartition("__transaction_state", found.located[name])]
        epoch = max(0, log.epochs.latest or 0)
        batch = encode_batch([(key, value, now_ms)])
        log.append(batch, now_ms=now_ms, leader_epoch=epoch, origin=AppendOrigin.COORDINATOR)
    directory.close()


def check_files(path: str, story: Story) -> None:
    """Our reader finds what was committed, and every producer id has one owner."""
    directory = LogDir(path)
    views = [directory.partition(TOPIC, number) for number in range(PARTITIONS)]
    found = sorted(record.value or b"" for view in views for record in view.records())
    assert found == sorted(story.committed)
    given = {name: state.producer_id for name, state in directory.coordinator.transactions.items()}
    assert len(set(given.values())) == len(given)
    for name, producer_id in given.items():
        assert story.owners.setdefault(producer_id, name) == name
    for view in views:
        ids = producer_ids(view)
        for record in view.records(isolation_level="read_uncommitted"):
            owner = (record.value or b"").partition(b"|")[0].decode()
            assert story.owners.setdefault(ids[record.offset], owner) == owner


def producer_ids(view: PartitionView) -> dict[int, int]:
    """The producer id of each record, by its offset."""
    return {
        offset: batches.producer_id[i]
        for segment in view.segments
        for batches in segment.indexes()
        for i in range(len(batches))
        for offset in range(batches.base_offset[i], batches.last_offset[i] + 1)
    }


def check_report(report: HandOver, story: Story) -> None:
    """The command knows all transactional ids and groups, and what the directory has given out."""
    assert (report.findings, report.is_ready) == ([], True)
    assert {row.transactional_id: row.state for row in report.transactions} == story.states
    assert {row.group: row.offsets for row in report.groups}["plain"] == 1
    assert {row.group: row.pending for row in report.groups}["decided"] == 1
    assert max(story.owners) <= report.largest_producer_id < report.next_producer_id
    assert story.largest_given <= report.next_producer_id
    story.largest_given = report.next_producer_id


def turn_over(path: str, story: Story, turn: int, to: Owner) -> None:
    """Between two owners."""
    decided = {f"decided {turn}": S.PREPARE_COMMIT, f"doomed {turn}": S.PREPARE_ABORT}
    decide(path, decided)
    story.states |= {name: state.label for name, state in decided.items()}
    check_files(path, story)
    now_ms = SystemClock().now_ms()
    check_report(check(FILES, path, to, now_ms=now_ms), story)
    check_report(hand_over(FILES, path, to, now_ms=now_ms), story)


def check_taken_over(server: str, story: Story, turn: int) -> None:
    """The new owner completes what was decided, and has everything."""
    story.committed += story.decided
    story.decided = []
    story.states |= {f"decided {turn}": "CompleteCommit", f"doomed {turn}": "CompleteAbort"}
    story.offsets["decided"] = turn
    for group, offset in story.offsets.items():
        until(lambda group=group: offset_of(server, group), offset)
    until(lambda: consumed(server), sorted(story.committed))


def there_and_back(kafka: KafkaBroker, rounds: int) -> None:
    """Let the directory go to Kafka and come back that often."""
    path, story = str(kafka.log_dir), Story()
    for turn in range(2 * rounds + 1):
        owner, other = (Owner.TXNKAFKA, Owner.KAFKA) if turn % 2 == 0 else (Owner.KAFKA, Owner.TXNKAFKA)
        with owned(kafka, owner) as server:
            if turn:
                check_taken_over(server, story, turn - 1)
            work(server, story, turn)
        turn_over(path, story, turn, other)
    assert len(story.owners) > 5 * rounds


def test_there_and_back(kafka: KafkaBroker) -> None:
    there_and_back(kafka, ROUNDS)
