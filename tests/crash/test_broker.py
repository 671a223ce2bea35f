"""What a broker has promised holds after a power cut at any moment: transactions are whole or not there."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conftest import LONG
from tests.unit.broker.node import UNCOMMITTED, Node, Producer, batch_of
from txnkafka.broker.broker import open_broker
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.coordinators import transactions, unknown_transactions
from txnkafka.broker.durability import Durability
from txnkafka.broker.requests import ProduceRequest
from txnkafka.coordinator.txn.txn_coordinator import TransactionCoordinator
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.records import TransactionMetadata

STATES, LEAST = (6_000, 2_000) if LONG else (250, 150)  # states that look alike count once


class History:
    """What a client has been told, behind which change of the disk."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.acknowledged: list[tuple[int, bytes, bool]] = []  # change, value, committed
        self.plain: list[tuple[int, bytes]] = []

    def now(self) -> int:
        assert isinstance(self.node.files, MemoryFiles)
        return len(self.node.files.journal)

    def transaction(self, producer: Producer, value: bytes, *, commit: bool = True) -> None:
        assert producer.send(value, 0, 1) == [ErrorCode.NONE] * 2
        assert producer.end(commit=commit) == ErrorCode.NONE
        self.acknowledged.append((self.now(), value, commit))

    def append(self, value: bytes) -> None:
        assert self.node.append(batch_of(value)).error == ErrorCode.NONE
        self.plain.append((self.now(), value))


def workload() -> History:
    """Transactions of versions 1 and 2, committed and aborted, plain records between them, a topic that is
    created on the way, an instance that is fenced."""
    node = Node(transaction_state_log_num_partitions=1)
    history = History(node)
    node.create("t", 2, segment_bytes="600")
    producer = Producer(node)
    history.transaction(producer, b"1")
    history.append(b"plain 1")
    history.transaction(producer, b"2", commit=False)
    old = Producer(node, "y", version=1)
    old.add(0, 1)
    history.transaction(old, b"3")
    assert producer.send(b"fenced", 0, 1) == [ErrorCode.NONE] * 2
    node.create("u")
    producer = Producer(node)
    history.transaction(producer, b"4")
    history.append(b"plain 2")
    assert producer.send_and_commit(b"5", 0, 1) == ErrorCode.NONE
    history.acknowledged.append((history.now(), b"5", True))
    assert producer.send(b"6 begins", 0, 1) == [ErrorCode.NONE] * 2
    assert producer.send_and_commit(b"6", 0, 1) == ErrorCode.NONE
    history.acknowledged.append((history.now(), b"6", True))
    assert producer.send(b"7", 0, 1) == [ErrorCode.NONE] * 2
    commit_and_send(producer, b"undecided")
    history.acknowledged.append((history.now(), b"7", True))
    assert old.add(0) == {ErrorCode.NONE}
    assert old.send(b"open", 0) == [ErrorCode.NONE]
    return history


def commit_and_send(producer: Producer, value: bytes) -> None:
    """Send the first batch of the next transaction behind EndTxn, without waiting for its answer: its data is
    appended beside COMPLETE_COMMIT, and may be durable without it."""
    answers: list[Answer] = []
    node, producer_id, epoch = producer.node, producer.identity.producer_id, producer.identity.producer_epoch
    node.request(
        node.broker.transactions.end_txn, producer.id, producer_id, epoch, True, answers.append,
        client_transaction_version=2,
    )  # fmt: skip
    producer.identity, producer.sequences = Answer(ErrorCode.NONE, producer_id, epoch + 1), {}
    assert producer.send(value, 0, 1) == [ErrorCode.NONE] * 2
    assert answers == [producer.identity]


def check(history: History, disk: object, changes: int) -> str:
    """Open what is left. Returns what became of the transaction that was under way."""
    node = Node(MemoryFiles(base=disk), transaction_state_log_num_partitions=1)  # type: ignore[arg-type]
    for _ in range(3):  # markers are written again, and transactions time out
        node.wait(70_000)
    if "t" not in node.broker.image.topics:
        assert not [each for each, *_ in history.acknowledged if each <= changes]
        return "no topic"
    first, second = node.values(0), node.values(1)
    for told, value, committed in history.acknowledged:
        if told <= changes:
            assert (value in first, value in second) == (committed, committed), value
    for told, value in history.plain:
        assert value in first or told > changes
    assert not {b"2", b"open", b"fenced", b"undecided"} & {*first, *second}
    both = [value for value in first if value in {b"1", b"3", b"4", b"5", b"6 begins", b"6", b"7"}]
    assert both == list(second), "a transaction is whole, and in its place"
    for partition in (0, 1):  # nothing holds readers up
        log = node.broker.logs[next(each for each in node.broker.logs if each[:] == ("t", partition))]
        assert log.last_stable_offset == log.high_watermark == log.log_end_offset
    later = Producer(node)
    assert later.send(b"later", 0, 1) == [ErrorCode.NONE] * 2
    assert later.end() == ErrorCode.NONE
    assert node.values(0)[-1:] == node.values(1)[-1:] == [b"later"]
    assert len(node.values(0, UNCOMMITTED)) >= len(first) + 1
    node.close()
    return f"{len(both)} transactions"


def explore(history: History, limit: int = STATES, begin: int = 0) -> Counter[str]:
    node = history.node
    assert isinstance(node.files, MemoryFiles)
    news = [told for told, *_ in (*history.acknowledged, *history.plain)]
    found: Counter[str] = Counter()
    for state in crash_states(node.files, limit=limit, begin=begin, news=news):
        try:
            found[check(history, state.disk, state.changes)] += 1
        except AssertionError as error:
            raise AssertionError(f"{state.name}: {error}") from error
    return found


def test_a_transaction_is_whole_or_not_there() -> None:
    found = explore(workload())
    print(f"{sum(found.values())} states of a broker: {dict(sorted(found.items()))}")
    assert sum(found.values()) >= LEAST
    assert {f"{count} transactions" for count in range(5)} <= found.keys()


def test_a_second_crash_before_what_is_unknown_is_settled() -> None:
    """The data of a transaction has reached the disk, and its coordinator's record has not; the node starts,
    and crashes again before it has aborted the transaction or has let it join."""
    node = Node(transaction_state_log_num_partitions=1)
    node.create("t", 1)
    producer = Producer(node)
    batch = producer.batch(0, b"unknown")
    request = ProduceRequest({TopicPartition("t", 0): batch}, transactional_id="x")
    node.request(node.broker.produce, request, lambda _: None)
    assert isinstance(node.files, MemoryFiles)
    seen = 0
    for first in crash_states(node.files, begin=len(node.files.journal)):
        if "file" not in first.kind:
            continue
        files = MemoryFiles(base=first.disk)
        open_broker(files, "/data", BrokerConfig(transaction_state_log_num_partitions=1), now_ms=node.now_ms)
        for second in crash_states(files, begin=len(files.journal), limit=6):
            again = Node(MemoryFiles(base=second.disk), transaction_state_log_num_partitions=1)
            for _ in range(3):
                again.wait(70_000)
            log = again.broker.logs[TopicPartition("t", 0)]
            seen += log.log_end_offset > 0
            assert log.last_stable_offset == log.log_end_offset, f"{first.name}; {second.name}"
    assert seen >= 10


def test_the_data_of_the_next_transaction_joins_it() -> None:
    """Both transactions have the same partition. Of the second one the data has reached the disk, and of the
    coordinator's log neither the end of the first nor the beginning of the second."""
    node = Node(transaction_state_log_num_partitions=1)
    node.create("t", 2)
    producer = Producer(node)
    assert producer.send(b"1", 0, 1) == [ErrorCode.NONE] * 2
    identity, answers = producer.identity, list[Answer]()
    node.request(
        node.broker.transactions.end_txn, "x", identity.producer_id, identity.producer_epoch, True,
        answers.append, client_transaction_version=2,
    )  # fmt: skip
    for _ in range(2):  # the decision, the markers
        flush = node.broker.begin_flush()
        assert flush is not None
        node.broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)
    producer.identity, producer.sequences = answers[0], {}
    batches = {TopicPartition("t", number): producer.batch(number, b"2") for number in (0, 1)}
    request = ProduceRequest(batches, transactional_id="x")
    node.request(node.broker.produce, request, lambda _: None)
    assert isinstance(node.files, MemoryFiles)
    for state in crash_states(node.files, begin=len(node.files.journal)):
        if "torn" in state.kind:
            continue
        again = Node(MemoryFiles(base=state.disk), transaction_state_log_num_partitions=1)
        results = again.produce(batches, transactional_id="x")
        assert [result.error for result in results.values()] == [ErrorCode.NONE] * 2, state.name
        producer.node = again
        identity = producer.identity
        assert producer.end() == ErrorCode.NONE, state.name
        producer.identity = identity
        assert [again.values(0), again.values(1)] == [[b"1", b"2"]] * 2, state.name


def test_what_an_unreadable_coordinator_has_decided_is_not_aborted() -> None:
    """The commit is decided and acknowledged, the partition of the decision is damaged, and the markers are
    lost: nobody knows that the transaction is to be aborted."""
    node = Node(transaction_state_log_num_partitions=1)
    node.create("t", 1)
    producer = Producer(node)
    assert producer.send(b"1", 0) == [ErrorCode.NONE]
    assert producer.end() == ErrorCode.NONE
    node.wait(70_000)  # checkpoints
    assert producer.send(b"2", 0) == [ErrorCode.NONE]
    answers: list[Answer] = []
    node.request(
        node.broker.transactions.end_txn, "x", producer.identity.producer_id,
        producer.identity.producer_epoch, True, answers.append, client_transaction_version=2,
    )  # fmt: skip
    while not answers:
        flush = node.broker.begin_flush()
        assert flush is not None
        node.broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)
    assert isinstance(node.files, MemoryFiles)
    (disk,) = (
        state.disk
        for state in crash_states(node.files, begin=len(node.files.journal))
        if state.kind == "lost, names kept"
    )
    files = MemoryFiles(base=disk)
    path = "/data/__transaction_state-0/00000000000000000000.log"
    files.open_to_write(path).write(70, [b"damage"])
    again = Node(files, transaction_state_log_num_partitions=1)
    again.wait(70_000)
    log = again.broker.logs[TopicPartition("t", 0)]
    assert TopicPartition("__transaction_state", 0) not in again.broker.logs
    assert log.last_stable_offset < log.log_end_offset
    assert again.values(0) == [b"1"]


def answered_early(self: TransactionCoordinator, request: object, metadata: object) -> bool:
    """Data is not flushed before the decision."""
    return False


def marked_at_once(self: Durability, log: object, call: object, **_: object) -> None:
    """Everything counts as durable when it is appended."""
    self.soon(lambda: call(ErrorCode.NONE))  # type: ignore[operator]
    self._flushes.want(log)  # type: ignore[arg-type]


def nothing_is_ended(*_: object) -> None:
    """Transactions that a crash has left unknown stay open."""


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        pytest.param(TransactionCoordinator, "_waits_for_data", answered_early, marks=pytest.mark.slow),
        (Durability, "when_durable", marked_at_once),
        (transactions, "end_unknown", nothing_is_ended),
    ],
    ids=["data is not flushed before the decision", "nothing waits for the disk", "nothing is settled"],
)
def test_a_planted_fault_is_found(
    where: object, name: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unknown_transactions.end_unknown is transactions.end_unknown
    monkeypatch.setattr(where, name, instead)
    with pytest.raises((AssertionError, KafkaError)):
        explore(workload(), limit=2_000)


def knows_by_partition(owner: TransactionMetadata, partition: object, entry: object) -> bool:
    """Data of the next transaction counts as data of the one that is being ended."""
    return partition in owner.topic_partitions


def test_an_epoch_that_is_not_compared_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a matter of the moments between the markers of one transaction and the first data of the next."""
    history = workload()
    begin = max(change for change, value, _ in history.acknowledged if value != b"7")
    monkeypatch.setattr(unknown_transactions, "will_end", knows_by_partition)
    with pytest.raises(AssertionError, match="last_stable_offset"):
        explore(history, limit=400, begin=begin)
