"""Small files are whole or missing, and directories are created from the top: in an order that no power cut
can break."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from txnkafka.env import LocalDataFiles, make_directories, remove_tree, unique_name, write_durably
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def names(files: MemoryFiles, path: str) -> list[str]:
    return [each.name for each in files.list(path)]


def test_a_file_is_replaced_and_the_way_is_left_clean() -> None:
    files = MemoryFiles()
    files.create("/note.tmp").write(0, [b"left by a crash, and longer"])
    write_durably(files, "/note", b"old")
    write_durably(files, "/note", b"new")
    assert names(files, "/") == ["note"]
    assert files.read("/note", 9) == b"new"


def test_a_power_cut_leaves_the_old_content_or_the_new() -> None:
    files = MemoryFiles()
    write_durably(files, "/note", b"old")
    done = len(files.journal)
    write_durably(files, "/note", b"new")

    def found(begin: int) -> set[bytes]:
        states = crash_states(files, begin=begin)
        return {MemoryFiles(base=each.disk).read("/note", 9) for each in states}

    assert found(done) == {b"old", b"new"}
    assert found(len(files.journal)) == {b"new"}


def test_a_file_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_durably(LocalDataFiles(), "note", b"new", suffix=f".{unique_name()}")
    make_directories(LocalDataFiles(), "a/b")
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")) == ["a", "a/b", "note"]


def test_a_failed_replacement_leaves_the_old_file_alone() -> None:
    for number in range(1, 5):  # create, write, sync, rename
        memory = MemoryFiles()
        write_durably(memory, "/note", b"old")
        with pytest.raises(OSError, match="planned"):
            write_durably(FaultyFiles(memory, FaultPlan(number)), "/note", b"new")
        assert names(memory, "/") == ["note"]
        assert memory.read("/note", 9) == b"old"


def test_the_first_error_is_raised_when_all_later_calls_fail() -> None:
    files = FaultyFiles(MemoryFiles(), FaultPlan(2, errno.ENOSPC, for_ever=True))
    with pytest.raises(OSError, match=r"planned.*/note\.tmp") as caught:
        write_durably(files, "/note", b"new")
    assert caught.value.__context__ is None
    assert files.plan.failed == [("write", ".tmp"), ("remove", ".tmp")]


def test_directories_are_made_and_synced_from_above() -> None:
    files = MemoryFiles()
    for _ in range(2):
        make_directories(files, "/a/b")
    calls = [(each.kind, each.path) for each in files.journal]
    assert calls == [
        ("make_directory", "/a"),
        ("sync_directory", "/"),
        ("make_directory", "/a/b"),
        ("sync_directory", "/a"),
    ]


def test_a_file_in_the_place_of_a_directory() -> None:
    files = MemoryFiles()
    files.create("/a")
    with pytest.raises(FileExistsError):
        make_directories(files, "/a")


def test_a_directory_that_another_process_creates_first() -> None:
    class Busy(MemoryFiles):
        def make_directory(self, path: str) -> None:
            super().make_directory(path)
            raise FileExistsError(errno.EEXIST, "exists already", path)

    files = Busy()
    make_directories(files, "/a/b")
    assert files.is_directory("/a/b")


def test_a_tree_is_removed_and_what_its_links_lead_to_is_not(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner" / "empty").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "file").touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "folder" / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").touch()
    for name in ("folder", "file", "nothing"):
        remove_tree(LocalDataFiles(), str(tmp_path / name))
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")) == ["kept", "kept/file"]


def test_names_differ() -> None:
    assert len({unique_name() for _ in range(100)}) == 100
