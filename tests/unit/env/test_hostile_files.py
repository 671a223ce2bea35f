"""Links and special files: no write follows a link, and no call waits for a FIFO."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from txnkafka.env import LocalDataFiles, LocalFileSystem, remove_tree, write_durably
from txnkafka.env.file_lock import is_file_locked

FILES = LocalDataFiles()
CONTENT = b"a file of somebody else"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_bytes(CONTENT)
    return path


def test_a_link_is_read_and_not_written(tmp_path: Path, victim: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(victim)
    assert FILES.read(str(link), 100) == CONTENT
    for call in (FILES.open_to_write, FILES.lock):
        with pytest.raises(OSError, match="is a symbolic link") as caught:
            call(str(link))
        assert caught.value.errno == errno.ELOOP
        assert caught.value.filename == str(link)
    with pytest.raises(FileExistsError):
        FILES.create(str(link))
    before = victim.stat().st_mtime_ns
    FILES.set_modified_ms(str(link), 1)
    assert (victim.read_bytes(), victim.stat().st_mtime_ns) == (CONTENT, before)


def test_a_dangling_link_makes_no_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert FILES.exists(str(link))
    for call in (FILES.open_to_write, FILES.lock, FILES.create):
        with pytest.raises(OSError, match=r"symbolic link|exists"):
            call(str(link))
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_takes_the_place_of_a_link(tmp_path: Path, victim: Path) -> None:
    for name in ("note", "note.tmp"):
        (tmp_path / name).symlink_to(victim)
    write_durably(FILES, str(tmp_path / "note"), b"content")
    assert (tmp_path / "note").read_bytes() == b"content"
    assert not (tmp_path / "note").is_symlink()
    assert victim.read_bytes() == CONTENT


def test_links_in_a_listing(tmp_path: Path, victim: Path) -> None:
    for name, target in (("dangling", "nowhere"), ("folder", tmp_path), ("link", victim), ("loop", "loop")):
        (tmp_path / name).symlink_to(target)
    found = {entry.name: entry for entry in FILES.list(str(tmp_path))}
    assert [each.name for each in found.values() if each.is_link] == ["dangling", "folder", "link", "loop"]
    assert (found["link"].size, found["folder"].is_directory) == (len(CONTENT), True)
    assert found["loop"].fault == os.strerror(errno.ELOOP)
    assert found["dangling"].fault
    assert not found["link"].fault


@pytest.mark.parametrize("call", [FILES.open, FILES.open_to_write, FILES.lock])
def test_no_special_file_is_opened(tmp_path: Path, call: Callable[[str], object]) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in (str(tmp_path / "fifo"), "/dev/zero", str(tmp_path)):
        with pytest.raises(OSError, match=r"regular|directory"):
            call(name)


def test_a_fifo_called_lock_does_not_block(tmp_path: Path) -> None:
    """Called in another thread, so that this test ends in any case."""
    fifo = str(tmp_path / ".lock")
    os.mkfifo(fifo)
    answers: list[object] = []
    asking = threading.Thread(target=lambda: answers.append(is_file_locked(fifo)), daemon=True)
    asking.start()
    asking.join(60)
    assert answers == [False]
    assert not LocalFileSystem().is_locked(fifo)
    lock = FILES.lock(str(tmp_path / "other"))
    assert lock is not None
    lock.close()


def test_a_fifo_that_replaces_a_file_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The FIFO replaces the file between the check and the opening."""
    fifo = str(tmp_path / ".lock")
    os.mkfifo(fifo)
    monkeypatch.setattr("txnkafka.env.file_lock.os.path.isfile", lambda path: True)
    monkeypatch.setattr("txnkafka.env.file_lock.check_regular", lambda path, follow: None)
    answers: list[object] = []

    def ask() -> None:
        answers.append(is_file_locked(fifo))
        try:
            FILES.lock(fifo)
        except OSError as error:
            answers.append(error.errno)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60)
    assert answers == [False, errno.EINVAL]


@pytest.mark.slow
def test_a_tree_of_many_levels_is_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "top")
    for _ in range(1_500):
        os.mkdir(path)
        path += "/d"
    remove_tree(FILES, str(tmp_path / "top"))
    assert list(tmp_path.iterdir()) == []
