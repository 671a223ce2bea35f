"""``__transaction_state`` lost its end, the partitions kept theirs: the next transaction works at once."""

from __future__ import annotations

import pytest

from tests.unit.broker.node import COMMITTED, NOW, Node, Producer
from txnkafka.coordinator.partitions import partition_for
from txnkafka.coordinator.txn.txn_image import LARGEST_EPOCH
from txnkafka.env import write_durably
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.storage.formats import parse_offset_checkpoint
from txnkafka.storage.formats.checkpoint import format_offset_checkpoint
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.records import (
    TransactionMetadata,
    TransactionState,
    encode_transaction_key,
    encode_transaction_value,
)

STATE = f"/data/__transaction_state-{partition_for('x', 2)}"

POINTS = "/data/recovery-point-offset-checkpoint"


def state_files(files: MemoryFiles) -> dict[str, bytes]:
    return {each.name: files.read(f"{STATE}/{each.name}", 1 << 30) for each in files.list(STATE)}


def put_back(files: MemoryFiles, content: dict[str, bytes], *, start: str = "unclean") -> None:
    """Replace the log of the coordinator. No recovery point shows that it was longer: after a power
    cut all logs are checked, or only what lies after their recovery points (``settled``), or none of them in
    a directory that was restored in parts (``clean``)."""
    points = parse_offset_checkpoint(files.read(POINTS, 1000)) if start == "settled" else {}
    for name in [POINTS] if start == "clean" else [POINTS, "/data/.kafka_cleanshutdown"]:
        files.remove(name)
    kept = {partition: point for partition, point in points.items() if partition.topic == "t"}
    write_durably(files, POINTS, format_offset_checkpoint(kept))
    for each in files.list(STATE):
        files.remove(f"{STATE}/{each.name}")
    for name, data in content.items():
        file = files.create(f"{STATE}/{name}")
        file.write(0, [data])
        file.close()


def committed(producer: Producer, value: bytes) -> ErrorCode:
    if producer.version == 1:
        assert producer.add(0) == {ErrorCode.NONE}
    assert producer.send(value) == [ErrorCode.NONE]
    return producer.end()


@pytest.mark.parametrize("later", [1, 5])
@pytest.mark.parametrize("version", [1, 2])
def test_the_next_transaction_works_at_once(version: int, later: int) -> None:
    files = MemoryFiles()
    node = Node(files)
    node.create("t")
    producer = Producer(node, version=version)
    assert committed(producer, b"first") == ErrorCode.NONE
    node.close()
    lost = state_files(files)
    node = Node(files)
    for number in range(later):
        producer = Producer(node, version=version)
        assert committed(producer, b"later %d" % number) == ErrorCode.NONE
    old = producer
    node.close()
    put_back(files, lost)
    node = Node(files)
    old.node = node
    assert old.end() != ErrorCode.NONE, "its transaction may have partitions that are not known"
    assert committed(Producer(node, version=version), b"next") == ErrorCode.NONE
    assert node.values(isolation_level=COMMITTED)[-1] == b"next"


def with_lost_records(
    state: TransactionState,
    version: int,
    *,
    epoch: int = 5,
    later: int = 3,
    next_producer_id: int = -1,
    stays_open: bool = False,
    start: str = "unclean",
) -> tuple[Node, Producer]:
    """A node whose log of the coordinator ends with ``state`` at ``epoch``, for partition 0, while later
    transactions of the producer were committed in both partitions; if the last one ``stays_open``, it has
    partition 1 only. Returns the producer of the last one."""
    node = Node(MemoryFiles())
    node.create("t", 2)
    producer = Producer(node, version=version)
    id_now = producer.identity.producer_id
    partitions = frozenset({TopicPartition("t", 0)})
    is_idle = state in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT)
    metadata = TransactionMetadata(
        "x", id_now, id_now, next_producer_id, epoch, -1, 60_000, state,
        frozenset() if is_idle else partitions, NOW, NOW, version if version >= 2 else 0,
    )  # fmt: skip
    value = encode_transaction_value(metadata, 1)
    record = encode_transaction_key("x"), value
    node.broker.transactions.coordinator.runtime.log.append(partition_for("x", 2), [record], lambda _: None)
    node.close()
    lost = state_files(node.files)  # type: ignore[arg-type]
    node = Node(node.files)
    producer = Producer(node, version=version)
    for number in range(later):
        if version == 1:
            assert producer.add(0, 1) == {ErrorCode.NONE}
        assert producer.send(b"later %d" % number, 0, 1) == [ErrorCode.NONE] * 2
        assert producer.end() == ErrorCode.NONE
        if version == 1 and number < later - 1:
            producer = Producer(node, version=version)
    if stays_open:
        if version == 1:
            assert producer.add(1) == {ErrorCode.NONE}
        assert producer.send(b"open", 1) == [ErrorCode.NONE]
    node.close()
    put_back(node.files, lost, start=start)  # type: ignore[arg-type]
    return Node(node.files), producer


def largest_epoch(node: Node, producer_id: int) -> int:
    """Return the largest epoch that a partition of the topic has of a producer id."""
    logs = [log for partition, log in node.broker.logs.items() if partition.topic == "t"]
    entries = [entry for log in logs for entry in log.producers.entries()]
    return max((entry.producer_epoch for entry in entries if entry.producer_id == producer_id), default=-1)


def goes_on(node: Node, old: Producer, version: int) -> None:
    """The old producer is fenced, and the next one of the id commits its first transaction in all partitions,
    with an epoch above all that are known."""
    old.node = node
    if version == 1:
        assert old.add(1) & {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert old.end() != ErrorCode.NONE
    known = largest_epoch(node, old.identity.producer_id)
    producer = Producer(node, version=version)
    assert producer.identity.error == ErrorCode.NONE
    is_same = producer.identity.producer_id == old.identity.producer_id
    assert not is_same or producer.identity.producer_epoch > known
    if version == 1:
        assert producer.add(0, 1) == {ErrorCode.NONE}
    assert producer.send(b"next", 0, 1) == [ErrorCode.NONE] * 2
    assert producer.end() == ErrorCode.NONE
    for partition in range(2):
        assert node.values(partition, isolation_level=COMMITTED)[-1] == b"next"


UNDER_WAY = [TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]


@pytest.mark.parametrize("later", [1, 3])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("state", [*UNDER_WAY, TransactionState.COMPLETE_COMMIT, TransactionState.EMPTY])
def test_the_transaction_after_one_whose_end_was_lost_works(
    state: TransactionState, version: int, later: int
) -> None:
    node, old = with_lost_records(state, version, later=later)
    goes_on(node, old, version)


@pytest.mark.parametrize("epoch", range(LARGEST_EPOCH - 6, LARGEST_EPOCH - 1))
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("state", UNDER_WAY)
def test_epochs_that_are_used_up_by_lost_transactions_bring_another_producer_id(
    state: TransactionState, version: int, epoch: int
) -> None:
    node, old = with_lost_records(state, version, epoch=epoch, later=3)
    goes_on(node, old, version)


@pytest.mark.parametrize("later", [1, 3])
def test_epochs_of_the_next_producer_id_are_looked_at(later: int) -> None:
    """The decision whose markers are on their way names the producer id of the next transaction."""
    node, old = with_lost_records(
        TransactionState.PREPARE_COMMIT, 2, epoch=LARGEST_EPOCH, next_producer_id=900, later=later
    )
    assert old.identity.producer_id == 900
    goes_on(node, old, 2)


@pytest.mark.parametrize("start", ["unclean", "settled", "clean"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("state", [*UNDER_WAY, TransactionState.COMPLETE_COMMIT, TransactionState.EMPTY])
def test_the_next_transaction_does_not_commit_one_whose_records_were_lost(
    state: TransactionState, version: int, start: str
) -> None:
    """It is open in partition 1, which the coordinator does not know, and its producer may not end it."""
    node, old = with_lost_records(state, version, stays_open=True, start=start)
    goes_on(node, old, version)
    assert b"open" not in node.values(1, isolation_level=COMMITTED)


def test_a_producer_that_got_the_next_epoch_does_not_share_it() -> None:
    """Version 2 answers EndTxn with the next epoch, which only the markers have: the records were lost."""
    node = Node(MemoryFiles())
    node.create("t")
    old = Producer(node)
    node.close()
    lost = state_files(node.files)  # type: ignore[arg-type]
    old.node = node = Node(node.files)
    assert committed(old, b"first") == ErrorCode.NONE
    node.close()
    put_back(node.files, lost)  # type: ignore[arg-type]
    old.node = node = Node(node.files)
    producer = Producer(node)
    assert producer.identity.producer_epoch > old.identity.producer_epoch
    assert committed(producer, b"next") == ErrorCode.NONE
    assert old.send(b"zombie") != [ErrorCode.NONE]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("state", [*UNDER_WAY, TransactionState.COMPLETE_COMMIT, TransactionState.EMPTY])
def test_the_producer_of_the_last_known_record_is_fenced(state: TransactionState, version: int) -> None:
    """Others had later epochs, although the coordinator's log has lost them."""
    node, old = with_lost_records(state, version)
    old.node = node
    answer = old.init(producer_id=old.identity.producer_id, producer_epoch=5)
    assert answer.error == ErrorCode.PRODUCER_FENCED
