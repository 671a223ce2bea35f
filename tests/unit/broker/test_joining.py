"""A partition joins a transaction beside its first data: what is acknowledged, shown or aborted when the
record of the coordinator, or the marker of the transaction before, does not become durable."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.broker.gaps import end, flush, power_cut, produce
from tests.unit.broker.node import NOW, Node, Producer, batch_of
from txnkafka.broker.coordinators.marker_writer import WritableMarker
from txnkafka.broker.coordinators.unknown_transactions import abort_if_unknown
from txnkafka.broker.requests import ProduceRequest
from txnkafka.coordinator.group.group_requests import Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.testing.memory_files import MemoryFiles

if TYPE_CHECKING:
    from txnkafka.env import DataFile

NONE = ErrorCode.NONE
STATES = "__transaction_state"
PARTITION = TopicPartition("t", 0)
ONE = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}


def commit_offset(node: Node, producer: Producer, version: int = 5) -> list[dict[TopicPartition, ErrorCode]]:
    """TxnOffsetCommit of the group ``g``; the answer comes into the list."""
    found: list[dict[TopicPartition, ErrorCode]] = []
    identity = ProducerIdAndEpoch(producer.identity.producer_id, producer.identity.producer_epoch)
    node.request(
        node.broker.commit_in_transaction, Identity("g"), "x", identity,
        {PARTITION: OffsetToCommit(7)}, found.append, version=version,
    )  # fmt: skip
    return found


def write_marker_of_next_epoch(node: Node, producer: Producer, partition: TopicPartition) -> None:
    """As an administrator does who ends a hanging transaction."""
    identity = producer.identity
    marker = WritableMarker(identity.producer_id, identity.producer_epoch + 1, False, (partition,), 0)
    node.broker.transactions.markers.append(partition, marker, lambda _: None)


@pytest.fixture
def node() -> Node:
    node = Node(**ONE)
    node.create("t", 2)
    return node


@pytest.mark.parametrize("again", ["the same batch", "the next batch"])
def test_no_batch_is_acknowledged_before_its_partition_has_joined(node: Node, again: str) -> None:
    """The record fails that was to be durable beside the first batch. The client commits after a restart; the
    answer to its first batch was lost."""
    producer = Producer(node)
    assert producer.send(b"first", 1) == [NONE]
    batch = producer.batch(0, b"a")
    produce(node, batch)
    acknowledged = produce(node, batch if again == "the same batch" else producer.batch(0, b"b"))
    assert flush(node, STATES) == ["__transaction_state-0", "t-0"]
    assert [each.error for each in acknowledged] != [NONE]
    node.settle()
    producer.node = restarted = Node(power_cut(node.files), **ONE)
    assert producer.end() == NONE
    assert restarted.values(0) == []
    assert restarted.values(1) == [b"first"]


def test_batches_behind_the_first_one_are_answered_with_it(node: Node) -> None:
    producer = Producer(node)
    answers = [produce(node, producer.batch(0, value)) for value in (b"a", b"b", b"c")]
    assert node.broker.logs[TopicPartition("t", 0)].log_end_offset == 3
    node.settle()
    assert [each[0].error for each in answers] == [NONE] * 3
    assert producer.end() == NONE
    assert node.values(0) == [b"a", b"b", b"c"]


def test_no_offsets_are_acknowledged_before_their_partition_has_joined(node: Node) -> None:
    node.request(node.broker.groups.find, "g")
    node.settle()
    producer = Producer(node)
    assert producer.send(b"output", 1) == [NONE]
    _, again = commit_offset(node, producer), commit_offset(node, producer)
    flush(node, STATES)
    assert again != [{PARTITION: NONE}]
    node.settle()
    producer.node = restarted = Node(power_cut(node.files), **ONE)
    assert producer.end() == NONE
    offsets: list[Any] = []
    restarted.request(
        restarted.broker.groups.fetch,
        "g",
        [PARTITION],
        lambda _, rows: offsets.append(rows),
        require_stable=True,
    )
    restarted.settle()
    assert offsets[0][PARTITION].offset == -1


def test_a_decision_behind_a_record_that_failed_is_that_of_all_partitions(node: Node) -> None:
    """The record fails by which t-1 joins, and PREPARE_COMMIT lies behind it. The process is killed: its
    successor finds both in the page cache."""
    producer = Producer(node)
    assert producer.send(b"half", 0) == [NONE]
    sent, ended = produce(node, producer.batch(1, b"other half"), 1), end(node, producer)
    assert flush(node) == ["t-1"]
    assert flush(node, STATES) == ["__transaction_state-0"]
    node.settle()
    assert NONE not in {sent[0].error, ended[0].error}
    restarted = Node(MemoryFiles(base=node.files.disk()), **ONE)
    restarted.wait(60_000)
    assert (restarted.values(0), restarted.values(1)) == ([b"half"], [b"other half"])


@pytest.mark.parametrize("commit", [True, False])
def test_the_marker_of_the_transaction_before_does_not_end_the_next_one(node: Node, commit: bool) -> None:
    """The disk is full when the marker of a transaction of version 1 is appended. EndTxn is answered all the
    same, and the client goes on with version 2 in the same epoch: the log still has the old one open."""
    producer = Producer(node, version=1)
    assert producer.add(0) == {NONE}
    assert producer.send(b"1", 0) == [NONE]
    write, full = node.files.write, True

    def writes(file: DataFile, position: int, data: bytes) -> None:
        if full and "/t-0/" in file.path:
            raise OSError(errno.ENOSPC, "planned")
        write(file, position, data)

    node.files.write = writes  # type: ignore[method-assign]
    assert producer.end(commit=commit) == NONE
    full = False
    producer.version = 2
    sent = produce(node, producer.batch(0, b"2"))
    node.settle()
    node.wait(1_000)
    node.wait(1_000)
    first = [b"1"] if commit else []
    assert node.values(0) == first
    assert [each.error for each in sent] == [NONE]
    assert producer.end() == NONE
    node.wait(1_000)
    assert node.values(0) == [*first, b"2"]


def test_a_batch_that_was_overtaken_by_a_greater_epoch_is_refused(node: Node) -> None:
    """It waits for the transaction before; meanwhile an administrator ends that with the next epoch."""
    producer = Producer(node, version=1)
    assert producer.add(0) == {NONE}
    assert producer.send(b"1", 0) == [NONE]
    ended = end(node, producer, version=0)
    flush(node)  # PREPARE_COMMIT; the marker is appended, and COMPLETE_COMMIT waits for its flush
    producer.version = 2
    sent = produce(node, producer.batch(0, b"2"))
    write_marker_of_next_epoch(node, producer, PARTITION)
    node.settle()
    assert [each.error for each in ended] == [NONE]
    assert [each.error for each in sent] == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert node.values(0) == [b"1"]


def test_offsets_that_were_overtaken_by_a_greater_epoch_are_refused(node: Node) -> None:
    node.request(node.broker.groups.find, "g")
    node.settle()
    producer = Producer(node, version=1)
    node.call(
        node.broker.transactions.add_offsets, "x", producer.identity.producer_id,
        producer.identity.producer_epoch, "g",
    )  # fmt: skip
    first = commit_offset(node, producer, version=3)
    node.settle()
    assert first == [{PARTITION: NONE}]
    end(node, producer, version=0)
    flush(node)  # PREPARE_COMMIT
    overtaken = commit_offset(node, producer)
    write_marker_of_next_epoch(node, producer, TopicPartition("__consumer_offsets", 0))
    node.settle()
    assert overtaken == [{PARTITION: ErrorCode.INVALID_PRODUCER_EPOCH}]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_recovery_point_between_two_syncs_leaves_no_transaction_open(node: Node, is_written: bool) -> None:
    """A client goes from transaction version 1 to 2 without a new epoch. Its data is flushed first; the
    recovery points are written, or not, and the power is cut."""
    producer = Producer(node, version=1)
    assert producer.add(0, 1) == {NONE}
    assert producer.send(b"1", 0) == [NONE]
    assert producer.end() == NONE
    node.wait(100)
    assert node.broker.transactions.describe("x").state == "CompleteCommit"
    producer.version = 2
    sent, ended = produce(node, producer.batch(0, b"2")), end(node, producer)
    assert flush(node) == ["t-0"]
    assert sent == ended == []
    if is_written:
        node.broker.data.checkpoint()
    restarted = Node(power_cut(node.files), **ONE)
    restarted.wait(3_600_000)
    restarted.wait(3_600_000)
    log = restarted.broker.logs[TopicPartition("t", 0)]
    assert (log.producers.open_transactions(), log.last_stable_offset) == ([], log.log_end_offset)
    assert restarted.values(0) == [b"1"]


@pytest.mark.parametrize("adds", [False, True])
def test_a_marker_that_is_written_again_decides_about_nothing_new(node: Node, adds: bool) -> None:
    """COMPLETE_COMMIT of transaction version 1 is in flight, AddPartitions 3 comes, then Produce 13. After a
    crash the marker, of the same epoch, is written once more."""
    producer = Producer(node, version=1)
    assert producer.add(0, 1) == {NONE}
    assert producer.send(b"1", 0) == [NONE]
    assert producer.send(b"1", 1) == [NONE]
    ended = end(node, producer, version=0)
    while not ended:
        flush(node)
    flush(node)
    if adds:
        node.request(
            node.broker.transactions.add_partitions, "x", producer.identity.producer_id,
            producer.identity.producer_epoch, [TopicPartition("t", 0)], lambda _: None,
        )  # fmt: skip
    produce(node, producer.batch(1, b"undecided"), 1)
    group = node.broker.begin_flush()
    assert group is not None
    for log, each in group.logs:
        if log.topic_partition.topic == "t":
            each.run(log.files)
    assert Node(power_cut(node.files), **ONE).values(1) == [b"1"]


@pytest.mark.parametrize("limit", range(300, 312))
def test_a_transaction_that_is_accepted_can_end(limit: int) -> None:
    """The record of its end has some bytes more than that of its last partition."""
    node = Node(**ONE, message_max_bytes=limit)
    node.create("t", 80)
    producer, number = Producer(node), 0
    while producer.send(b"a", number) == [NONE]:
        number += 1
    assert 0 < number < 80
    assert producer.end(commit=False) == NONE
    node.wait(1_000)
    assert node.broker.transactions.describe("x").state == "CompleteAbort"


@pytest.mark.parametrize("is_later", [False, True])
def test_a_record_that_fails_aborts_only_what_is_open_in_its_epoch(node: Node, is_later: bool) -> None:
    """A transaction of a later epoch may be open in the partition by then; another record belongs to it."""
    producer, partition = Producer(node), TopicPartition("t", 1)
    assert producer.send(b"a", 0) == [NONE]
    producer_id, epoch = producer.identity.producer_id, producer.identity.producer_epoch
    log = node.broker.logs[partition]
    opened_at = epoch + is_later
    batch = batch_of(
        b"b", producer_id=producer_id, producer_epoch=opened_at, base_sequence=0, transactional=True
    )
    guard = log.verification.maybe_start(
        log.producers, producer_id, opened_at, 0, supports_epoch_bump=False, now_ms=node.now_ms
    )
    log.append(batch, now_ms=node.now_ms, guard=guard)
    transactions = node.broker.transactions
    abort_if_unknown(
        node.broker.services, transactions.coordinator, transactions.markers, partition,
        transactional_id="x", producer=(producer_id, epoch),
    )  # fmt: skip
    node.settle()
    (entry,) = log.producers.entries()
    assert entry.has_open_transaction is is_later


def test_log_append_time_is_the_time_of_the_append() -> None:
    """A batch waits for the markers of the transaction before, and is appended behind one that came later."""
    node = Node(**ONE)
    node.create("t", 2, message_timestamp_type="LogAppendTime")
    producer = Producer(node)
    assert producer.send(b"first", 1) == [NONE]
    ended = end(node, producer)
    flush(node)
    (producer.identity,), producer.sequences = ended, {}
    waits = produce(node, producer.batch(0, b"waits"))
    node.now_ms += 2_000
    came_later: list[Any] = []
    request = ProduceRequest({PARTITION: batch_of(b"came later")})
    node.request(node.broker.produce, request, lambda results: came_later.append(results[PARTITION]))
    assert node.broker.logs[PARTITION].log_end_offset == 1
    node.now_ms += 1_000
    node.settle()
    assert [each.error for each in (*came_later, *waits)] == [NONE, NONE]
    assert [each.log_append_time - NOW for each in (*came_later, *waits)] == [2_000, 3_000]
