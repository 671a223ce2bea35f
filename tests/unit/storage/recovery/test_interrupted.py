"""Changes of a partition directory that a crash interrupted, made by hand."""

from __future__ import annotations

import pytest

from tests.unit.storage.cleaner.compacted import CompactedLog
from tests.unit.storage.logs import DIRECTORY, NOW, append, content, opened
from txnkafka.env import make_directories
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import delete_old_segments, delete_records, truncate_to
from txnkafka.storage.recovery.interrupted import finish_interrupted
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles


def swapped(*, durable: bool = True) -> MemoryFiles:
    """Return the files of two segments and a ``.swap`` that replaces both; unless ``durable``, a power cut
    may remove its name."""
    log = opened(segment_bytes=300)
    for _ in range(4):
        append(log)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    log.close()
    assert isinstance(log.files, MemoryFiles)
    files = MemoryFiles(base=log.files.disk())
    found = content(files)
    file = files.create(f"{DIRECTORY}/00000000000000000000.log.swap")
    file.write(0, [found[f"{base:020}.log"] for base in (0, 2)])
    file.sync()
    file.close()
    return MemoryFiles(base=files.disk()) if durable else files


def again(files: MemoryFiles) -> PartitionLog:
    config = opened(segment_bytes=300).config
    partition = opened().topic_partition
    return open_log(files, DIRECTORY, partition, config, Start(recovery_point=4), now_ms=NOW).log


def test_a_swap_takes_its_place() -> None:
    log = again(swapped())
    assert ([each.base_offset for each in log.segments], log.log_end_offset) == ([0], 4)
    assert not [name for name in content(log.files) if name.endswith(".swap")]


def test_a_swap_without_batches_replaces_its_own_segment() -> None:
    """The swap is empty: the old files of its name must not restore the removed batches."""
    files = swapped()
    files.remove(f"{DIRECTORY}/00000000000000000000.log.swap")
    files.create(f"{DIRECTORY}/00000000000000000000.log.swap").close()
    finish_interrupted(files, DIRECTORY, lambda *step: None)
    found = content(files)
    assert found["00000000000000000000.log"] == b""
    assert "00000000000000000000.index" not in found
    assert found["00000000000000000002.log"]


def test_a_crash_while_a_swap_takes_its_place_loses_nothing() -> None:
    """Opening the log again after a crash at any moment gives the same result."""
    files = swapped()
    again(files)
    states = 0
    for state in crash_states(files):
        log = again(MemoryFiles(base=state.disk))
        assert [each.base_offset for each in log.segments] == [0], state.name
        assert log.log_end_offset == 4, state.name
        assert not [name for name in content(log.files) if name.endswith(".swap")], state.name
        states += 1
    assert states > 20


@pytest.mark.slow
def test_a_crash_loses_nothing_when_the_swap_was_not_durable() -> None:
    files = swapped(durable=False)
    again(files)
    for state in crash_states(files):
        log = again(MemoryFiles(base=state.disk))
        assert [each.base_offset for each in log.segments] in ([0], [0, 2]), state.name
        assert log.log_end_offset == 4, state.name


def test_a_swap_leaves_the_snapshot_at_its_start() -> None:
    """It has the state in front of the segments: producers whose own segments are gone."""
    files = swapped()
    files.create(f"{DIRECTORY}/{0:020}.snapshot").close()
    assert f"{2:020}.snapshot" in content(files)
    finish_interrupted(files, DIRECTORY, lambda *step: None)
    assert [name for name in content(files) if name.endswith(".snapshot")] == [
        f"{offset:020}.snapshot" for offset in (0, 4)
    ]


@pytest.mark.slow
def test_a_crash_during_a_swap_forgets_no_producer() -> None:
    """Producer 100 has written to a segment that was deleted before the compaction."""
    files = MemoryFiles()
    make_directories(files, DIRECTORY)
    log = CompactedLog(files)
    for producer_id in (100, 101, 101):
        log.data(producer_id, (b"key", b"value"))
        log.roll()
    log.log.flush()
    delete_records(log.log, 1)
    assert delete_old_segments(log.log, NOW) == 1
    begin = len(files.journal)
    assert log.clean().segments_before == 2
    states = list(crash_states(files, begin=begin))
    assert len(states) > 40
    for state in states:
        left = open_log(
            MemoryFiles(base=state.disk), DIRECTORY, log.log.topic_partition, log.config,
            Start(log_start_offset=1), now_ms=NOW,
        ).log  # fmt: skip
        assert left.producers.entry(100) is not None, state.name


def test_leftovers_are_removed() -> None:
    files = swapped()
    for name in ("00000000000000000002.log.deleted", "00000000000000000000.log.cleaned"):
        files.create(f"{DIRECTORY}/{name}").close()
    log = again(files)
    assert log.log_end_offset == 4
    assert not [name for name in content(files) if name.count(".") > 1]


def test_a_crash_while_a_damaged_log_is_cut_brings_nothing_back() -> None:
    """Compaction may leave gaps, so a segment above the truncation would look valid."""
    log = opened(segment_bytes=120, cleanup_policy="compact")
    for _ in range(4):
        append(log, key=b"k")
    assert [each.base_offset for each in log.segments] == [0, 1, 2, 3]
    log.close()
    file = log.files.open_to_write(f"{DIRECTORY}/00000000000000000001.log")
    file.write(70, [b"\xff"])
    file.close()
    assert isinstance(log.files, MemoryFiles)
    base = log.files.disk()

    def end(files: MemoryFiles) -> int:
        start = Start(recovery_point=1)
        return open_log(
            files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW
        ).log.log_end_offset

    files = MemoryFiles(base=base)
    assert end(files) == 1
    for state in crash_states(files):
        assert end(MemoryFiles(base=state.disk)) == 1, state.name


@pytest.mark.slow
def test_a_crash_while_a_log_is_cut_leaves_no_hole() -> None:
    log = opened(segment_bytes=120, cleanup_policy="compact")
    for _ in range(5):
        append(log, key=b"k")
    log.close()
    assert isinstance(log.files, MemoryFiles)
    files = MemoryFiles(base=log.files.disk())

    def reopened(files: MemoryFiles) -> PartitionLog:
        start = Start(recovery_point=1)
        return open_log(files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW).log

    truncate_to(reopened(files), 1, now_ms=NOW)
    ends = set()
    for state in crash_states(files):
        left = reopened(MemoryFiles(base=state.disk))
        assert [each.base_offset for each in left.segments if each.size] == list(range(left.log_end_offset))
        ends.add(left.log_end_offset)
    assert ends == {1, 2, 3, 4, 5}
