"""What a crash has left half done in a partition directory, by hand."""

from __future__ import annotations

from tests.unit.storage.logs import DIRECTORY, NOW, append, content, opened
from txnkafka.storage.partition_log import PartitionLog
from txnkafka.storage.recovery import Start, open_log
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles


def swapped() -> MemoryFiles:
    """Two segments, and a ``.swap`` that has the batches of the first, which it replaces."""
    log = opened(segment_bytes=300)
    for _ in range(4):
        append(log)
    assert [each.base_offset for each in log.segments] == [0, 2]
    log.close()
    files = log.files
    assert isinstance(files, MemoryFiles)
    for kind in ("log", "index", "timeindex"):
        path = f"{DIRECTORY}/00000000000000000000.{kind}"
        file = files.create(f"{path}.swap")
        file.write(0, [files.read(path, 1000)])
        file.sync()
        file.close()
    files.sync_directory(DIRECTORY)
    files.sync_directory("/data")
    files.sync_directory("/")
    return files


def again(files: MemoryFiles) -> PartitionLog:
    config = opened(segment_bytes=300).config
    partition = opened().topic_partition
    return open_log(files, DIRECTORY, partition, config, Start(recovery_point=4), now_ms=NOW).log


def test_a_swap_takes_its_place() -> None:
    log = again(swapped())
    assert (log.log_start_offset, log.log_end_offset) == (0, 4)
    assert not [name for name in content(log.files) if name.endswith(".swap")]


def test_a_crash_while_a_swap_takes_its_place_loses_nothing() -> None:
    """Opening it again comes to the same end, whatever moment it was cut off at."""
    files = MemoryFiles(base=swapped().disk())
    again(files)
    states = 0
    for state in crash_states(files):
        log = again(MemoryFiles(base=state.disk))
        assert (log.log_start_offset, log.log_end_offset) == (0, 4), state.name
        assert not [name for name in content(log.files) if name.endswith(".swap")], state.name
        states += 1
    assert states > 20


def test_leftovers_go() -> None:
    files = swapped()
    for name in ("00000000000000000002.log.deleted", "00000000000000000000.log.cleaned"):
        files.create(f"{DIRECTORY}/{name}").close()
    log = again(files)
    assert log.log_end_offset == 4
    assert not [name for name in content(files) if name.count(".") > 1]
