"""Files opened for writing: local files and those in memory behave the same."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from txnkafka.env import DataFile, DataFiles, DirectoryEntry, LocalDataFiles
from txnkafka.testing.memory_files import MemoryFiles

PARTS_LIMIT = 1024  # buffers per system call, on Linux and macOS
NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


@pytest.fixture(params=["local", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> DataFiles:
    if request.param == "local":
        return LocalDataFiles()
    memory = MemoryFiles()
    for each in reversed([tmp_path, *tmp_path.parents[:-1]]):
        memory.make_directory(str(each))
    return memory


@pytest.fixture
def top(tmp_path: Path) -> str:
    return str(tmp_path)


def content(files: DataFiles, path: str) -> bytes:
    return files.read(path, 1 << 20)


def names(files: DataFiles, path: str) -> list[str]:
    return [each.name for each in files.list(path)]


def error_of(call: Callable[[], object]) -> int | None:
    with pytest.raises(OSError, match=r"Errno") as caught:
        call()
    return caught.value.errno


def new_file(files: DataFiles, path: str, written: bytes = b"") -> DataFile:
    file = files.create(path)
    file.write(0, [written])
    return file


def test_parts_are_written_one_behind_the_other(files: DataFiles, top: str) -> None:
    file = new_file(files, f"{top}/a", b"0123456789")
    file.write(2, [b"AB", memoryview(bytearray(b"CD")), b"", memoryview(b"E").cast("c")])
    assert content(files, f"{top}/a") == b"01ABCDE789"
    file.write(12, [b"xy"])
    assert content(files, f"{top}/a") == b"01ABCDE789\0\0xy"
    assert file.size() == 14
    file.close()


@pytest.mark.parametrize("parts", [0, 1, PARTS_LIMIT, PARTS_LIMIT + 1, 3 * PARTS_LIMIT + 7])
def test_any_number_of_parts(files: DataFiles, top: str, parts: int) -> None:
    file = new_file(files, f"{top}/a")
    pieces = [bytes([number % 251]) * (number % 3) for number in range(parts)]
    file.write(0, pieces)
    assert content(files, f"{top}/a") == b"".join(pieces)
    file.close()


def test_parts_of_wider_items_are_bytes(files: DataFiles, top: str) -> None:
    file = new_file(files, f"{top}/a")
    file.write(0, [memoryview(b"abcdefgh").cast("Q")])
    assert file.size() == 8
    file.close()


def test_an_open_file_is_read_and_written(files: DataFiles, top: str) -> None:
    file = new_file(files, f"{top}/a", b"abcdef")
    buffer = bytearray(4)
    assert file.read_into(memoryview(buffer), 4) == 2
    assert bytes(buffer) == b"ef\0\0"
    assert file.read_into(memoryview(buffer), 6) == 0
    file.sync()
    file.close()
    again = files.open_to_write(f"{top}/a")
    again.write(6, [b"gh"])
    again.close()
    reader = files.open(f"{top}/a")
    assert reader.size() == 8
    mapping = reader.map(8)
    assert bytes(mapping.read(0, 8) if mapping else content(files, f"{top}/a")) == b"abcdefgh"
    reader.close()


def test_truncating_cuts_or_fills_with_zeros(files: DataFiles, top: str) -> None:
    file = new_file(files, f"{top}/a", b"abcdef")
    file.truncate(3)
    assert content(files, f"{top}/a") == b"abc"
    file.truncate(5)
    assert content(files, f"{top}/a") == b"abc\0\0"
    file.close()


def test_a_closed_file_is_not_written(files: DataFiles, top: str) -> None:
    file = new_file(files, f"{top}/a")
    file.close()
    for call in (lambda: file.write(0, [b"x"]), lambda: file.truncate(0), file.sync, file.size):
        assert error_of(call) == errno.EBADF
    file.close()


def test_a_file_is_never_created_over_another(files: DataFiles, top: str) -> None:
    new_file(files, f"{top}/a", b"x").close()
    with pytest.raises(FileExistsError):
        files.create(f"{top}/a")
    with pytest.raises(FileExistsError):
        files.make_directory(f"{top}/a")
    assert content(files, f"{top}/a") == b"x"


def test_what_is_not_there(files: DataFiles, top: str) -> None:
    nothing = f"{top}/nothing"
    for call in (files.open, files.open_to_write, files.remove, files.list, files.sync_directory):
        with pytest.raises(FileNotFoundError):
            call(nothing)
    for call in (files.create, files.make_directory):
        with pytest.raises(FileNotFoundError):
            call(f"{nothing}/below")
    with pytest.raises(FileNotFoundError):
        files.rename(nothing, f"{top}/a")
    with pytest.raises(FileNotFoundError):
        files.set_modified_ms(nothing, 0)
    assert not files.exists(nothing)
    assert not files.is_directory(nothing)
    assert names(files, top) == []


def test_directories_are_no_files(files: DataFiles, top: str) -> None:
    files.make_directory(f"{top}/d")
    new_file(files, f"{top}/a").close()
    for call in (files.open, files.open_to_write):
        with pytest.raises(OSError, match=r"directory|regular"):
            call(f"{top}/d")
    for call in (files.list, files.sync_directory):
        with pytest.raises(NotADirectoryError):
            call(f"{top}/a")
    with pytest.raises(NotADirectoryError):
        files.create(f"{top}/a/below")


def test_a_rename_replaces_a_file(files: DataFiles, top: str) -> None:
    new_file(files, f"{top}/a", b"new").close()
    old = new_file(files, f"{top}/b", b"old")
    files.rename(f"{top}/a", f"{top}/b")
    assert names(files, top) == ["b"]
    assert content(files, f"{top}/b") == b"new"
    assert old.size() == 3  # still open, without a name
    old.close()
    files.rename(f"{top}/b", f"{top}/b")
    assert names(files, top) == ["b"]


def test_directories_are_renamed(files: DataFiles, top: str) -> None:
    for each in ("d", "e", "f"):
        files.make_directory(f"{top}/{each}")
    new_file(files, f"{top}/d/a", b"x").close()
    files.rename(f"{top}/d", f"{top}/e")
    assert names(files, top) == ["e", "f"]
    assert content(files, f"{top}/e/a") == b"x"
    assert error_of(lambda: files.rename(f"{top}/f", f"{top}/e")) in NOT_EMPTY
    with pytest.raises(NotADirectoryError):
        files.rename(f"{top}/f", f"{top}/e/a")
    with pytest.raises(IsADirectoryError):
        files.rename(f"{top}/e/a", f"{top}/f")
    files.make_directory(f"{top}/e/inner")
    for below in ("e/inner", "e/other", "e/inner/other"):
        with pytest.raises(OSError, match=r"nvalid|itself"):
            files.rename(f"{top}/e", f"{top}/{below}")


def test_removing(files: DataFiles, top: str) -> None:
    files.make_directory(f"{top}/d")
    file = new_file(files, f"{top}/d/a", b"x")
    assert error_of(lambda: files.remove(f"{top}/d")) in NOT_EMPTY
    files.remove(f"{top}/d/a")
    files.remove(f"{top}/d")
    assert names(files, top) == []
    file.write(1, [b"y"])  # it has no name, but exists as long as it is open
    assert file.size() == 2
    file.close()


def test_a_listing_tells_sizes_and_times(files: DataFiles, top: str) -> None:
    files.make_directory(f"{top}/d")
    new_file(files, f"{top}/a", b"abc").close()
    files.set_modified_ms(f"{top}/a", 1_234_567)
    first, second = files.list(top)
    assert first == DirectoryEntry("a", False, 3, 1_234_567)
    assert second[:3] == ("d", True, 0)


def test_a_lock_has_one_owner(files: DataFiles, top: str) -> None:
    path = f"{top}/.lock"
    assert not files.is_locked(path)
    first = files.lock(path)
    assert first is not None
    assert names(files, top) == [".lock"]
    assert files.lock(path) is None
    assert files.is_locked(path)
    first.close()
    first.close()
    assert not files.is_locked(path)
    second = files.lock(path)
    assert second is not None
    first.close()
    assert files.is_locked(path)
    second.close()


def test_a_directory_is_synced(files: DataFiles, top: str) -> None:
    files.sync_directory(top)
