"""Files that are written: whole or not there, one owner of a lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from txnkafka.env import LocalOutput, unique_name, write_durably


class Recorded(LocalOutput):
    """Remembers what was synced and renamed, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def sync(self, path: str) -> None:
        self.calls.append(("sync", Path(path).name.split(".")[0]))
        super().sync(path)

    def rename(self, source: str, target: str) -> None:
        self.calls.append(("rename", Path(target).name))
        super().rename(source, target)


def test_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(tmp_path: Path) -> None:
    files = Recorded()
    write_durably(files, str(tmp_path / "note"), b"old")
    write_durably(files, str(tmp_path / "note"), b"new")
    assert (tmp_path / "note").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["note"]
    assert files.calls == 2 * [("sync", "note"), ("rename", "note"), ("sync", tmp_path.name)]


def test_directories_are_made_and_synced_from_above(tmp_path: Path) -> None:
    files = Recorded()
    files.make_directory(str(tmp_path / "a" / "b"))
    files.make_directory(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    assert files.calls == [("sync", tmp_path.name), ("sync", "a")]


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    LocalOutput().create(str(tmp_path / "x")).close()
    with pytest.raises(FileExistsError):
        LocalOutput().create(str(tmp_path / "x"))


def test_a_lock_has_one_owner(tmp_path: Path) -> None:
    files, path = LocalOutput(), str(tmp_path / "lock")
    first = files.lock(path)
    assert first is not None
    assert files.lock(path) is None
    first.close()
    second = files.lock(path)
    assert second is not None
    second.close()


def test_removing(tmp_path: Path) -> None:
    files = LocalOutput()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "file").touch()
    for name in ("folder", "file", "nothing"):
        files.remove_tree(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_names_differ() -> None:
    assert len({unique_name() for _ in range(100)}) == 100


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_durably(LocalOutput(), str(tmp_path / "folder"), b"content")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
