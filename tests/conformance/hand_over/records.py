"""Records, producer ids, transactional ids, and groups of the classic protocol.

Each owner writes with idempotent and transactional producers, and leaves a transactional id in every state
that a stop can leave: Empty, Ongoing, PrepareCommit, PrepareAbort (between these records and the markers an
owner has died), CompleteCommit, CompleteAbort; Dead is never in the log. After each start the owner's
consumer, and after each stop our reader of files, finds the committed records and no others; groups have
their offsets, also while another one is pending; and no producer id has two owners.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Where

from tests.conformance.hand_over.owners import Owned
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

__all__ = ["SETTINGS", "TOPIC", "TOPICS", "Records", "consumed", "offset_of", "transaction", "until"]

SECONDS = 60
TOPIC, PARTITIONS = "t", 2
TOPICS = (f"{TOPIC}:{PARTITIONS}",)
SETTINGS = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}
S = TransactionState
FILES = LocalDataFiles()


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
            "auto.offset.reset": "earliest",
        }
    )  # fmt: skip


def consumed(server: str) -> list[bytes]:
    """Return the values that the owner's consumer receives, sorted."""
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


def offset_of(server: str, group: str, level: str = "read_committed") -> int | str:
    """Return the committed offset of partition 0, or the error, such as of a coordinator that is loading.

    A read_committed consumer waits for pending offsets.
    """
    client = consumer(server, group, level)
    try:
        (found,) = client.committed([Where(TOPIC, 0)], SECONDS / 4)
        return int(found.offset)
    except KafkaException as error:
        return str(error)
    finally:
        client.close()


def until(condition: object, expected: object) -> None:
    """Wait until a function returns the expected value."""
    deadline = time.monotonic() + SECONDS
    while (found := condition()) != expected:  # type: ignore[operator]
        assert time.monotonic() < deadline, (found, expected)
        time.sleep(0.2)


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


def producer_ids(view: PartitionView) -> dict[int, int]:
    """The producer id of each record, by its offset."""
    return {
        offset: batches.producer_id[i]
        for segment in view.segments
        for batches in segment.indexes()
        for i in range(len(batches))
        for offset in range(batches.base_offset[i], batches.last_offset[i] + 1)
    }


def commit_offset(server: str, client: Producer, group: str, offset: int) -> None:
    member = consumer(server, group)
    client.send_offsets_to_transaction([Where(TOPIC, 0, offset)], member.consumer_group_metadata(), SECONDS)
    member.close()


def commit_plainly(server: str, group: str, offset: int) -> None:
    member = consumer(server, group)
    member.commit(offsets=[Where(TOPIC, 0, offset)], asynchronous=False)
    member.close()


@dataclass
class Records:
    """The item of this file, with the expected state: committed values, values that a decided transaction
    will show, the offsets of groups, and the transactional ids with their states."""

    committed: list[bytes] = field(default_factory=list)
    decided: list[bytes] = field(default_factory=list)
    offsets: dict[str, int | str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    left_open: list[str] = field(default_factory=list)
    owners: dict[int, str] = field(default_factory=dict)
    largest_given: int = -1

    def check(self, owned: Owned, turn: int) -> None:
        """Wait until the owner has completed the decided transactions; compare all values and offsets."""
        self.committed += self.decided
        self.decided = []
        self.states |= {f"decided {turn - 1}": "CompleteCommit", f"doomed {turn - 1}": "CompleteAbort"}
        self.offsets["decided"] = turn - 1
        server = owned.address
        for group, offset in self.offsets.items():
            level = "read_uncommitted" if group == "pending" else "read_committed"
            until(lambda group=group, level=level: offset_of(server, group, level), offset)
        until(lambda: consumed(server), sorted(self.committed))

    def leave(self, owned: Owned, turn: int) -> None:
        """Write. The transactions that stay open come last, so that they hide nothing."""
        server = owned.address
        for name in self.left_open:  # a new instance aborts the open transaction
            producer(server, name)
            self.states[name] = "Empty"
        write(producer(server), *self._values(turn, f"idempotent {turn}"))
        committing = transaction(server, "commits", *self._values(turn, "commits"))
        commit_offset(server, committing, "copies", turn)
        committing.commit_transaction(SECONDS)
        aborting = transaction(server, "aborts", b"aborts|%d|never" % turn)
        aborting.abort_transaction(SECONDS)
        producer(server, f"empty {turn}")
        for group in ("plain", "pending"):
            commit_plainly(server, group, turn)
        self.offsets |= {"copies": turn, "plain": turn, "pending": turn, "member": self._member(server)}
        self.states |= {"commits": "CompleteCommit", "aborts": "CompleteAbort", f"empty {turn}": "Empty"}
        self.decided = [b"decided %d|%d|%d" % (turn, turn, i) for i in range(2)]
        prepared = transaction(server, f"decided {turn}", *self.decided)
        commit_offset(server, prepared, "decided", turn)
        doomed = transaction(server, f"doomed {turn}", b"doomed %d|%d|never" % (turn, turn))
        left = transaction(server, f"open {turn}", b"open %d|%d|never" % (turn, turn))
        commit_offset(server, left, "pending", 1_000 + turn)
        self.left_open = [f"open {turn}"]
        self.states |= dict.fromkeys((f"decided {turn}", f"doomed {turn}", f"open {turn}"), "Ongoing")
        del prepared, doomed, left  # the clients are closed without a request to the broker

    def _values(self, turn: int, owner: str) -> list[bytes]:
        values = [f"{owner}|{turn}|{i}".encode() for i in range(3)]
        self.committed += values
        return values

    def _member(self, server: str) -> int | str:
        """Let a member of a group read a record and commit; returns the offset of partition 0."""
        member = consumer(server, "member")
        member.subscribe([TOPIC])
        while (message := member.poll(SECONDS)) is not None and message.error():
            pass
        assert message is not None, "the member gets no record"
        member.commit(message, asynchronous=False)
        member.close()
        return offset_of(server, "member")

    def hand_over(self, path: str, turn: int, to: Owner) -> None:
        """Decide transactions as an owner does that dies, and hand the directory over."""
        decided = {f"decided {turn}": S.PREPARE_COMMIT, f"doomed {turn}": S.PREPARE_ABORT}
        decide(path, decided)
        self.states |= {name: state.label for name, state in decided.items()}
        self._check_files(path)
        now_ms = SystemClock().now_ms()
        self._check_report(check(FILES, path, to, now_ms=now_ms))
        self._check_report(hand_over(FILES, path, to, now_ms=now_ms))

    def _check_files(self, path: str) -> None:
        """Our reader finds the committed records, and every producer id has one owner."""
        directory = LogDir(path)
        views = [directory.partition(TOPIC, number) for number in range(PARTITIONS)]
        found = sorted(record.value or b"" for view in views for record in view.records())
        assert found == sorted(self.committed)
        given = {name: state.producer_id for name, state in directory.coordinator.transactions.items()}
        assert len(set(given.values())) == len(given)
        for name, producer_id in given.items():
            assert self.owners.setdefault(producer_id, name) == name
        for view in views:
            ids = producer_ids(view)
            for record in view.records(isolation_level="read_uncommitted"):
                owner = (record.value or b"").partition(b"|")[0].decode()
                assert self.owners.setdefault(ids[record.offset], owner) == owner

    def _check_report(self, report: HandOver) -> None:
        """The command knows all transactional ids and groups, and the ids that the directory has given
        out."""
        assert (report.findings, report.is_ready) == ([], True)
        assert {row.transactional_id: row.state for row in report.transactions} == self.states
        assert {row.group: row.offsets for row in report.groups}["plain"] == 1
        pending = {row.group: row.pending for row in report.groups if row.pending}
        assert pending == {"decided": 1, "pending": 1}
        assert max(self.owners) <= report.largest_producer_id < report.next_producer_id
        assert self.largest_given <= report.next_producer_id
        self.largest_given = report.next_producer_id
