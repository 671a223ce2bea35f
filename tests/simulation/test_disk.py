"""The disk of a simulation: its calls fail where they shall, and a process that dies changes nothing more."""

from __future__ import annotations

import errno

import pytest

from txnkafka.testing.memory_files import MemoryFile
from txnkafka.testing.simulation.disk import Died, SimulatedFiles
from txnkafka.testing.unsynced import Unsynced


def a_file(content: bytes) -> tuple[SimulatedFiles, MemoryFile]:
    files = SimulatedFiles()
    file = files.create("/a")
    file.write(0, [content])
    return files, file


def test_a_process_dies_in_a_call_and_does_nothing_behind_it() -> None:
    files, file = a_file(b"a")
    files.dies_in = 2
    file.write(1, [b"b"])
    with pytest.raises(Died):
        file.sync()
    with pytest.raises(Died):
        file.write(2, [b"c"])
    with pytest.raises(Died):
        files.remove("/a")
    files.unlock_all()
    assert files.read("/a", 10) == b"ab"
    assert [change.kind for change in files.journal] == ["create", "write", "write"]


def test_one_call_fails_behind_those_that_are_spared() -> None:
    files, file = a_file(b"a")
    files.failing, files.spared = "sync", 1
    file.sync()
    with pytest.raises(OSError, match="of sync"):
        file.sync()
    file.sync()
    assert files.failures == 1


@pytest.mark.parametrize("drops_unsynced", [False, True])
def test_a_failed_sync_drops_what_was_not_written_or_the_next_one_writes_it(drops_unsynced: bool) -> None:
    files, file = a_file(b"a")
    files.failing, files.drops_unsynced = "sync", drops_unsynced
    with pytest.raises(OSError, match="of sync"):
        file.sync()
    file.sync()
    unsynced = Unsynced(files.base)
    for change in files.journal:
        unsynced.make(change)
    assert bool(unsynced.uncertain(file.inode) if file.inode in unsynced.writes else []) is drops_unsynced


def test_a_file_grows_within_its_block_on_a_full_disk() -> None:
    files, file = a_file(bytes(500))
    files.is_full, files.block_bytes = True, 512
    file.write(500, [bytes(12)])
    with pytest.raises(OSError, match="no space left") as raised:
        file.write(512, [b"a"])
    assert raised.value.errno == errno.ENOSPC
    assert file.size() == 512
