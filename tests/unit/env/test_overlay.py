"""Changes in memory over files that are only read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from txnkafka.env import LocalDataFiles, LocalFileSystem, remove_tree
from txnkafka.env.overlay import OverlayFiles


def names(files: OverlayFiles, path: str) -> list[str]:
    return [each.name for each in files.list(path)]


def test_nothing_reaches_the_files(tmp_path: Path) -> None:
    for name in ("kept", "changed", "renamed", "removed", "replaced"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"x")
    before = {path: path.stat() for path in tmp_path.rglob("*")}
    root = str(tmp_path)
    files = OverlayFiles(LocalFileSystem())
    files.open_to_write(f"{root}/changed").write(3, [b"--", b"and more"])
    files.rename(f"{root}/renamed", f"{root}/replaced")
    files.remove(f"{root}/removed")
    files.remove(f"{root}/below/file")
    files.remove(f"{root}/below")
    files.make_directory(f"{root}/made")
    files.create(f"{root}/made/file").write(2, [b"y"])
    assert names(files, root) == ["changed", "kept", "made", "replaced"]
    assert names(files, f"{root}/made") == ["file"]
    assert files.read(f"{root}/changed", 100) == b"cha--and more"
    assert files.read(f"{root}/replaced", 100) == b"renamed"
    assert files.read(f"{root}/made/file", 100) == b"\0\0y"
    assert [each.size for each in files.list(root)] == [13, 4, 0, 7]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == {
        path: status.st_mtime_ns for path, status in before.items()
    }


def test_errors_are_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    root = str(tmp_path)
    files = OverlayFiles(LocalFileSystem())
    with pytest.raises(FileExistsError):
        files.create(f"{root}/file")
    files.remove(f"{root}/file")
    for call in (files.open, files.open_to_write, files.remove):
        with pytest.raises(FileNotFoundError):
            call(f"{root}/file")
    with pytest.raises(FileNotFoundError):
        files.create(f"{root}/nowhere/file")
    files.make_directory(f"{root}/made")
    files.create(f"{root}/made/file")
    with pytest.raises(OSError, match="the directory is not empty"):
        files.remove(f"{root}/made")


def test_a_lock_of_another_owner(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    held = LocalDataFiles().lock(path)
    assert held is not None
    files = OverlayFiles(LocalFileSystem())
    assert files.lock(path) is None
    held.close()
    mine = files.lock(path)
    assert mine is not None
    assert files.lock(path) is None
    mine.close()
    assert files.lock(path) is not None


@pytest.mark.parametrize("seed", range(20))
def test_a_file_is_what_a_file_would_be(tmp_path: Path, seed: int) -> None:
    """Random writes and truncations, on the overlay and on a real file."""
    chosen = random.Random(seed)
    path, twin = tmp_path / "file", tmp_path / "twin"
    for each in (path, twin):
        each.write_bytes(bytes(range(100)))
    overlay = OverlayFiles(LocalFileSystem())
    ours, theirs = overlay.open_to_write(str(path)), LocalDataFiles().open_to_write(str(twin))
    for _ in range(30):
        place = chosen.randrange(150)
        if chosen.random() < 0.3:
            ours.truncate(place)
            theirs.truncate(place)
        else:
            parts = [chosen.randbytes(chosen.randrange(20)) for _ in range(3)]
            ours.write(place, parts)
            theirs.write(place, parts)
        content = twin.read_bytes()
        assert overlay.read(str(path), 1000) == content
        buffer = bytearray(40)
        start = chosen.randrange(120)
        assert buffer[: ours.read_into(memoryview(buffer), start)] == content[start : start + 40]
        assert overlay.list(str(tmp_path))[0].size == len(content)
    assert path.read_bytes() == bytes(range(100))


def test_a_link_is_removed_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    """A link to the directory that it is in has no end."""
    (tmp_path / "kept").write_text("x")
    (tmp_path / "link").symlink_to(".")
    files = OverlayFiles(LocalFileSystem())
    remove_tree(files, str(tmp_path / "link"))
    assert [entry.name for entry in files.list(str(tmp_path))] == ["kept"]
    assert not files.exists(str(tmp_path / "link"))
    assert not files.is_directory(str(tmp_path / "link"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kept", "link"]


def test_a_listing_looks_at_the_changes_of_its_directory_only(tmp_path: Path) -> None:
    """A dry run of ``repair`` lists each partition, and may have changed files in all of them."""

    class Counted(LocalFileSystem):
        splits = 0

        def split(self, path: str) -> tuple[str, str]:
            self.splits += 1
            return super().split(path)

    base = Counted()
    files = OverlayFiles(base)
    for number in range(50):
        files.make_directory(f"{tmp_path}/{number}")
        for name in ("a", "b"):
            files.create(f"{tmp_path}/{number}/{name}").write(0, [b"x"])
    base.splits = 0
    assert all(names(files, f"{tmp_path}/{number}") == ["a", "b"] for number in range(50))
    assert base.splits < 100
