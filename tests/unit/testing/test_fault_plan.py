"""The planned call fails, in the planned way, and no other call."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from txnkafka.env import LocalDataFiles
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def test_all_calls_are_counted() -> None:
    plan = FaultPlan()
    files = FaultyFiles(MemoryFiles(), plan)
    files.make_directory("/t-0")
    file = files.create("/t-0/0.log")
    file.write(0, [b"abc"])
    file.write(3, [b"abc"])
    file.sync()
    files.sync_directory("/t-0")
    assert plan.calls == {
        ("make_directory", "t-0"): 1,
        ("create", ".log"): 1,
        ("write", ".log"): 2,
        ("sync", ".log"): 1,
        ("sync_directory", "t-0"): 1,
    }
    assert plan.failed == []


@pytest.mark.parametrize(("for_ever", "failing"), [(False, [3]), (True, [3, 4, 5])])
def test_a_call_fails_once_or_for_ever(for_ever: bool, failing: list[int]) -> None:
    plan = FaultPlan(3, errno.ENOSPC, for_ever=for_ever)
    memory = MemoryFiles()
    files = FaultyFiles(memory, plan)
    failed = []
    for number in range(1, 6):
        try:
            files.make_directory(f"/{number}")
        except OSError as error:
            failed.append((error.errno, error.filename))
    assert failed == [(errno.ENOSPC, f"/{number}") for number in failing]
    assert plan.failed == [("make_directory", str(number)) for number in failing]
    assert [int(each.name) for each in memory.list("/")] == sorted({1, 2, 3, 4, 5} - set(failing))


def test_an_interrupted_call_is_an_interrupted_error() -> None:
    with pytest.raises(InterruptedError):
        FaultyFiles(MemoryFiles(), FaultPlan(1, errno.EINTR)).list("/")


def test_only_calls_of_one_name_are_counted() -> None:
    plan = FaultPlan(2, call="write")
    file = FaultyFiles(MemoryFiles(), plan).create("/a")
    file.sync()
    file.write(0, [b"x"])
    with pytest.raises(OSError, match=r"planned.*/a"):
        file.write(0, [b"x"])


def test_half_of_a_short_write_arrives(tmp_path: Path) -> None:
    file = FaultyFiles(LocalDataFiles(), FaultPlan(2, errno.ENOSPC, short=True)).create(str(tmp_path / "a"))
    with pytest.raises(OSError, match="space"):
        file.write(0, [b"abc", b"defg"])
    assert file.size() == 3
    file.close()


def test_a_failed_sync_is_remembered() -> None:
    memory = MemoryFiles()
    file = FaultyFiles(memory, FaultPlan(1, call="sync")).create("/a")
    file.write(0, [b"x"])
    with pytest.raises(OSError, match="planned"):
        file.sync()
    file.sync()
    assert [each.kind for each in memory.journal] == ["create", "write", "failed_sync", "sync"]


def test_every_call_may_fail() -> None:
    """Each call that the disk may refuse, by its number, including reads."""
    for number in range(1, 16):
        plan = FaultPlan(number)
        files = FaultyFiles(MemoryFiles(), plan)
        buffer = memoryview(bytearray(3))
        with pytest.raises(OSError, match="planned"):
            every_call(files, buffer)
        assert sum(plan.calls.values()) == number
    plan = FaultPlan(16)
    every_call(FaultyFiles(MemoryFiles(), plan), buffer)
    assert plan.failed == []


def every_call(files: FaultyFiles, buffer: memoryview) -> None:
    files.make_directory("/d")
    files.create("/d/a").close()
    file = files.open_to_write("/d/a")
    file.write(0, [b"x"])
    file.truncate(3)
    file.sync()
    files.sync_directory("/d")
    files.open("/d/a").read_into(buffer, 0)
    files.read("/d/a", 3)
    files.list("/d")
    files.rename("/d/a", "/d/b")
    files.set_modified_ms("/d/b", 1)
    files.remove("/d/b")
    files.lock("/d/.lock")
