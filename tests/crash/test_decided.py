"""A start and a hand-over that write the markers of transactions that their coordinator completed without
them, interrupted by a power cut at each change of the disk: afterwards each has its outcome, once."""

from __future__ import annotations

from functools import cache

import pytest

from tests.conftest import LONG
from tests.crash.test_groups import CONFIG, committed, copy
from tests.unit.broker.node import NOW, UNCOMMITTED, Node, Producer
from tests.unit.handover.stories import contents
from txnkafka import LogDir
from txnkafka.env import write_durably
from txnkafka.error_codes import ErrorCode
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import Owner
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.disk import Disk
from txnkafka.testing.memory_files import MemoryFiles

STATES, LEAST = (2_000, 100) if LONG else (40, 20)  # of a start
HAND_OVERS, FEWEST = (300, 60) if LONG else (15, 8)
CLEAN = "/data/.kafka_cleanshutdown"
STATE = "/data/__transaction_state-0"
NONE = ErrorCode.NONE
LATER = NOW + 1_000


@cache
def disk_without_markers(version: int, *, commit: bool, is_clean: bool = True) -> Disk:
    """A directory in which a transaction with a record in two partitions and the offset of a group is
    complete for its coordinator, and open in all partitions; before it another one was committed."""
    files = MemoryFiles()
    node = Node(files, **CONFIG)
    node.create("t", 2)
    node.create("source", 1)
    node.request(node.broker.groups.find, "copies")
    node.settle()
    producer = Producer(node, version=version)
    begin(producer, b"before", 1)
    assert producer.end() == NONE
    if version == 1:  # else the marker may be the one of the next transaction, which has the same epoch
        node.wait(10)
    begin(producer, b"decided", 2)
    node.close()
    is_open = files.disk()
    producer.node = node = Node(files, now_ms=node.now_ms, **CONFIG)
    assert producer.end(commit=commit) == NONE
    node.close()
    decided = {path: content for path, content in contents(files).items() if path.startswith(STATE)}
    files = MemoryFiles(base=is_open)
    for entry in files.list(STATE):
        files.remove(f"{STATE}/{entry.name}")
    for path, content in decided.items():
        write_durably(files, path, content)
    if not is_clean:
        files.remove(CLEAN)
    return files.disk()


def begin(producer: Producer, value: bytes, offset: int) -> None:
    """A record in two partitions and an offset, in a transaction that is not ended."""
    node, identity = producer.node, producer.identity
    if producer.version == 1:
        assert producer.add(0, 1) == {NONE}
        transactions = node.broker.transactions
        answer = node.call(
            lambda reply: transactions.add_offsets(
                producer.id, identity.producer_id, identity.producer_epoch, "copies", reply
            )
        )
        assert answer.error == NONE
    assert producer.send(value, 1) == [NONE]
    copy(node, producer, offset - 1, value)


def has_its_outcome(disk: Disk, version: int, *, commit: bool) -> None:
    """Open the directory, and look for the transaction; then the next one works."""
    node = Node(MemoryFiles(base=disk), now_ms=LATER, **CONFIG)
    expected = [b"before", b"decided"] if commit else [b"before"]
    for partition in range(2):
        assert node.values(partition) == expected
        assert node.values(partition, UNCOMMITTED) == [b"before", b"decided"]
    assert committed(node, "copies") == len(expected)
    for partition, log in node.broker.logs.items():
        assert log.last_stable_offset == log.log_end_offset, partition
    producer = Producer(node, version=version)
    begin(producer, b"next", 3)
    assert producer.end() == NONE
    assert [node.values(partition) for partition in range(2)] == [[*expected, b"next"]] * 2
    assert committed(node, "copies") == 3
    node.close()


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_power_cut_in_the_start_that_writes_the_markers(version: int, commit: bool, is_clean: bool) -> None:
    files = MemoryFiles(base=disk_without_markers(version, commit=commit, is_clean=is_clean))
    Node(files, now_ms=LATER, **CONFIG)
    states = list(crash_states(files, limit=STATES))
    for state in states:
        try:
            has_its_outcome(state.disk, version, commit=commit)
        except AssertionError as error:
            raise AssertionError(f"{state.name}: {error}") from error
    assert len(states) >= LEAST


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_power_cut_in_the_hand_over_that_writes_the_markers(version: int, commit: bool) -> None:
    files = MemoryFiles(base=disk_without_markers(version, commit=commit))
    assert hand_over(files, "/data", Owner.KAFKA, now_ms=LATER).is_ready
    states = list(crash_states(files, limit=HAND_OVERS))
    for state in states:
        disk = MemoryFiles(base=state.disk)
        assert hand_over(disk, "/data", Owner.KAFKA, now_ms=LATER).is_ready, state.name
        found = check(disk, "/data", Owner.KAFKA, now_ms=LATER)
        assert found.is_ready, state.name
        assert not [finding for finding in found.findings if "hang" in finding.code], state.name
        for partition in range(2):
            view = LogDir("/data", file_system=disk).partition("t", partition)
            values = [record.value for record in view.records()]
            assert values == [b"before", b"decided"][: 1 + commit], state.name
        has_its_outcome(disk.disk(), version, commit=commit)
    assert len(states) >= FEWEST


def test_the_offsets_of_a_group_are_hidden_until_the_marker_is_there() -> None:
    """Before a start writes the marker, this directory holds the group back."""
    disk = MemoryFiles(base=disk_without_markers(2, commit=True))
    offsets = LogDir("/data", file_system=disk).partition("__consumer_offsets", 0)
    assert offsets.last_stable_offset < offsets.log_end_offset
