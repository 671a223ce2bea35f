"""What only local files can do: write a part of the data, be locked by other processes, survive a fork."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from txnkafka.env import LocalDataFiles

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "ab")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""
FILES = LocalDataFiles()


def other_process(path: Path) -> subprocess.Popen[str]:
    """Start another process that locks the file; its first line says that it has the lock."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def others_may_lock(path: Path) -> bool:
    with other_process(path) as process:
        return process.communicate("")[0] == "locked\n"


def in_a_child(check: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("taken", [[1], [3, 1, 2], [1] * 10])
def test_a_short_write_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[int]
) -> None:
    """The system writes a few bytes, then all; the write stops within and between parts."""
    counts, pwritev = iter(taken), os.pwritev

    def short(descriptor: int, parts: list[memoryview], position: int) -> int:
        whole = b"".join(parts)
        return pwritev(descriptor, [whole[: next(counts, len(whole))]], position)

    file = FILES.create(str(tmp_path / "a"))
    monkeypatch.setattr(os, "pwritev", short)
    file.write(2, [b"ab", b"", b"cde", b"fghijkl"])
    file.close()
    assert (tmp_path / "a").read_bytes() == b"\0\0abcdefghijkl"


def test_a_write_of_nothing_does_not_go_on_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FILES.create(str(tmp_path / "a"))
    monkeypatch.setattr(os, "pwritev", lambda *arguments: 0)
    with pytest.raises(OSError, match="nothing was written at position 7"):
        file.write(7, [b"ab"])
    file.close()


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    file = FILES.create(str(tmp_path / "a"))
    os.dup2(descriptor, file._descriptor)
    os.close(descriptor)
    with pytest.raises(OSError, match=str(tmp_path / "a")) as caught:
        file.write(0, [b"x"])
    assert caught.value.errno == errno.ENOSPC
    file.close()


def test_another_process_is_kept_out(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    lock = FILES.lock(str(path))
    assert lock is not None
    assert not others_may_lock(path)
    assert FILES.is_locked(str(path))
    assert not others_may_lock(path)  # checking it did not release it
    assert FILES.lock(str(path)) is None
    assert not others_may_lock(path)  # a second try did not, either
    assert FILES.locking_process(str(path)) == os.getpid()
    assert not others_may_lock(path)
    lock.close()
    assert others_may_lock(path)


def test_a_lock_is_found_by_another_name_of_its_file(tmp_path: Path) -> None:
    lock = FILES.lock(str(tmp_path / ".lock"))
    assert lock is not None
    (tmp_path / "link").symlink_to(tmp_path / ".lock")
    assert FILES.lock(str(tmp_path / "link")) is None
    assert FILES.is_locked(str(tmp_path / "link"))
    lock.close()


def test_the_lock_of_another_process_is_respected(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with other_process(path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        assert FILES.lock(str(path)) is None
        assert FILES.is_locked(str(path))
        assert FILES.locking_process(str(path)) == process.pid
        process.communicate("")
    assert FILES.locking_process(str(path)) is None
    lock = FILES.lock(str(path))
    assert lock is not None
    lock.close()


def test_a_lock_that_cannot_be_taken_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(OSError, match=r"no locks here.*\.lock"):
        FILES.lock(str(tmp_path / ".lock"))
    monkeypatch.undo()
    assert not FILES.is_locked(str(tmp_path / ".lock"))


def test_a_child_does_not_have_the_lock(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = FILES.lock(path)
    assert lock is not None

    def cannot_take_or_give_it_up() -> bool:
        lock.close()
        return FILES.is_locked(path) and FILES.lock(path) is None

    assert in_a_child(cannot_take_or_give_it_up)
    assert not others_may_lock(tmp_path / ".lock")
    lock.close()
    assert in_a_child(lambda: FILES.lock(path) is not None)


def test_a_child_does_not_write_what_its_parent_opened(tmp_path: Path) -> None:
    file = FILES.create(str(tmp_path / "a"))

    def is_refused() -> bool:
        for call in (lambda: file.write(0, [b"x"]), lambda: file.truncate(9), file.sync):
            with pytest.raises(RuntimeError, match="before a fork"):
                call()
        return True

    assert in_a_child(is_refused)
    assert file.size() == 0
    file.close()


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").touch()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    FILES.remove(str(tmp_path / "link"))
    assert [each.name for each in tmp_path.rglob("*")] == ["folder", "a"]
