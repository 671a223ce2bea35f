"""The checker of files finds what was planted in a directory, and nothing in one that the engine has
written."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tests.models.record_batch import decode_batch, read_header
from tests.unit.broker.node import Node, Producer, batch_of
from txnkafka.coordinator.group.group_requests import Identity, OffsetToCommit
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.simulation.log_checker import (
    check_directory,
    committed_offsets,
    committed_records,
    last_decisions,
)
from txnkafka.testing.simulation.log_files import batches_of, segments_of

Directory = dict[str, dict[str, bytes]]
METADATA = {"__cluster_metadata"}
LEADER_EPOCH_AT, SEQUENCE_AT, EPOCH_AT, COORDINATOR_EPOCH_AT = 12, 53, 51, 61 + 12


def directory_of(files: MemoryFiles) -> Directory:
    found: Directory = {}
    for entry in files.list("/data"):
        if entry.is_directory:
            path = f"/data/{entry.name}"
            found[entry.name] = {
                each.name: files.read(f"{path}/{each.name}", 1 << 20) for each in files.list(path)
            }
    return found


def sound() -> Directory:
    """Commits and aborts of both versions in small segments, closed."""
    node = Node(transaction_state_log_num_partitions=1)
    node.create("t", 2, segment_bytes="700")
    first, second = Producer(node), Producer(node, "y", version=1)
    for number in range(6):
        assert not any(first.send(b"x%d" % number, 0, 1))
        second.add(0)
        assert not any(second.send(b"y%d" % number, 0))
        assert not first.end(commit=number % 3 != 0)
        assert not second.end(commit=number % 2 == 0)
        node.append(batch_of(b"plain"))
    node.close()
    assert isinstance(node.files, MemoryFiles)
    return directory_of(node.files)


DIRECTORY = sound()


def segment(directory: Directory, number: int, partition: str = "t-0") -> tuple[str, bytearray, list[int]]:
    """Name, content, and positions of the batches of a segment."""
    base_offset, data = segments_of(directory[partition], ".log")[number]
    positions, position = [], 0
    while position < len(data):
        positions.append(position)
        position += 12 + struct.unpack_from(">i", data, position + 8)[0]
    return f"{base_offset:020}.log", bytearray(data), positions


def batch_at(data: bytes, positions: list[int], *, is_marker: bool) -> int:
    """The position of the last marker, or of the last batch of a producer."""
    found = [each for each, batch in zip(positions, batches_of(data), strict=True) if batch.producer_id >= 0
             and (batch.committed is not None) == is_marker]  # fmt: skip
    return found[-1]


def patched(at: int, form: str, change: int, *, is_marker: bool = False) -> Callable[[Directory], None]:
    """Change a field of the last batch of a producer by ``change``."""

    def plant(directory: Directory) -> None:
        name, data, positions = segment(directory, 1)
        position = batch_at(bytes(data), positions, is_marker=is_marker) + at
        struct.pack_into(form, data, position, struct.unpack_from(form, data, position)[0] + change)
        directory["t-0"][name] = bytes(data)

    return plant


def without_marker(directory: Directory) -> None:
    number = len(segments_of(directory["t-0"], ".log")) - 1
    name, data, positions = segment(directory, number)
    directory["t-0"][name] = bytes(data[: batch_at(bytes(data), positions, is_marker=True)])


def without_decision(directory: Directory) -> None:
    """Only what is behind the last PrepareCommit but one is there."""
    name, data, positions = segment(directory, 0, "__transaction_state-0")
    directory["__transaction_state-0"][name] = bytes(data[positions[-8] :])


def undecided(directory: Directory) -> None:
    name, data, positions = segment(directory, 0, "__transaction_state-0")
    directory["__transaction_state-0"][name] = bytes(data[: positions[-1]])


def without_index_entry(directory: Directory) -> None:
    name = next(
        each for each in sorted(directory["t-0"]) if each.endswith(".txnindex") and directory["t-0"][each]
    )
    directory["t-0"][name] = directory["t-0"][name][:-34]


def other_snapshot(directory: Directory) -> None:
    name = max(each for each in directory["t-0"] if each.endswith(".snapshot"))
    data = bytearray(directory["t-0"][name])
    data[10 + 13] ^= 1  # the last sequence of the first producer
    directory["t-0"][name] = bytes(data)


def without_segment(directory: Directory) -> None:
    del directory["t-0"][segment(directory, 1)[0]]


def torn(directory: Directory) -> None:
    name, data, _ = segment(directory, 1)
    directory["t-0"][name] = bytes(data[:-5])


PLANTED: list[tuple[str, Callable[[Directory], None], str]] = [
    ("a wrong offset", patched(0, ">q", -1), "follow"),
    ("a leader epoch that falls", patched(LEADER_EPOCH_AT, ">i", -1), "leader epoch -1 at .* after 0"),
    ("a missing segment", without_segment, "follows"),
    ("a torn batch", torn, "bytes"),
    ("a wrong sequence", patched(SEQUENCE_AT, ">i", 1), "has sequence|begins with sequence"),
    ("an epoch that falls", patched(EPOCH_AT, ">h", -1), "has epoch .* after|the marker at .* has epoch"),
    ("an epoch of another transaction", patched(EPOCH_AT, ">h", 5), "after|has epoch"),
    ("a marker with another epoch", patched(EPOCH_AT, ">h", 7, is_marker=True), "the marker at .* has epoch"),
    (
        "a coordinator epoch that falls",
        patched(COORDINATOR_EPOCH_AT, ">i", -1, is_marker=True),
        "coordinator epoch",
    ),
    ("a missing marker", without_marker, "is open since"),
    ("a commit without a decision", without_decision, "no PrepareCommit"),
    ("a transaction that is not complete", undecided, "is in state"),
    ("an aborted transaction without its entry", without_index_entry, "the transaction index"),
    ("a snapshot that differs", other_snapshot, "the snapshot"),
]


def test_what_the_engine_has_written_is_sound() -> None:
    assert check_directory(DIRECTORY, METADATA) == []
    assert len(segments_of(DIRECTORY["t-0"], ".log")) >= 3
    assert {state for _, _, state in last_decisions(DIRECTORY).values()} <= {4, 5}


@pytest.mark.parametrize(
    ("plant", "text"), [each[1:] for each in PLANTED], ids=[name for name, *_ in PLANTED]
)
def test_a_planted_fault_is_found(plant: Callable[[Directory], None], text: str) -> None:
    directory = {name: dict(files) for name, files in DIRECTORY.items()}
    plant(directory)
    problems = "\n".join(check_directory(directory, METADATA))
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(problems)


def test_what_read_committed_readers_get() -> None:
    values = [value for _, value in committed_records(DIRECTORY["t-0"])]
    joined = b" ".join(value or b"" for value in values)
    assert joined == b"y0 plain x1 plain x2 y2 plain plain x4 y4 plain x5 plain"


def offsets_in_files(*, committed: bool = True) -> dict[tuple[str, str, int], int]:
    """1 is committed in both partitions, 2 in both by a transaction, 3 in the second before that ends."""
    node = Node(transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1)
    node.create("t", 2)
    node.request(node.broker.groups.find, "g")
    node.settle()
    producer, identity = Producer(node), Identity("g")

    def offsets(offset: int, *partitions: int) -> dict[TopicPartition, OffsetToCommit]:
        return {TopicPartition("t", number): OffsetToCommit(offset) for number in partitions}

    node.call(node.broker.groups.commit, identity, offsets(1, 0, 1), version=9)
    in_transaction = node.broker.commit_in_transaction
    of = ProducerIdAndEpoch(producer.identity.producer_id, producer.identity.producer_epoch)
    node.call(in_transaction, identity, "x", of, offsets(2, 0, 1), version=5)
    node.call(node.broker.groups.commit, identity, offsets(3, 1), version=9)
    producer.end(commit=committed)
    node.call(node.broker.groups.commit, Identity("gone"), offsets(4, 0), version=9)
    node.request(node.broker.groups.delete, "gone", lambda error: None)
    node.close()
    assert isinstance(node.files, MemoryFiles)
    return committed_offsets(directory_of(node.files))


def test_what_groups_have_committed() -> None:
    assert offsets_in_files() == {("g", "t", 0): 2, ("g", "t", 1): 3}
    assert offsets_in_files(committed=False) == {("g", "t", 0): 1, ("g", "t", 1): 3}


def test_it_reads_batches_as_the_model_does() -> None:
    for number in range(len(segments_of(DIRECTORY["t-0"], ".log"))):
        _, data, positions = segment(DIRECTORY, number)
        for position, batch in zip(positions, batches_of(bytes(data)), strict=True):
            header = read_header(bytes(data), position)
            identity = batch[:5]
            assert identity == (
                header.base_offset,
                header.last_offset,
                header.partition_leader_epoch,
                header.producer_id,
                header.producer_epoch,
            )
            end = position + 12 + struct.unpack_from(">i", data, position + 8)[0]
            records = decode_batch(bytes(data[position:end]))
            assert [each[2] for each in batch.records] == [each.value for each in records]
