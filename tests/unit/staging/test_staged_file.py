"""Staged files: durable before their names are told, removed after an error, and found by age."""

from __future__ import annotations

import pytest

from txnkafka.env import write_durably
from txnkafka.staging import StagedFile, orphans, remove_staged, staging_beside
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

FOLDER = "/shared/data.staging"


def stage(files: MemoryFiles, content: bytes = b"one batch") -> str:
    with StagedFile(files, FOLDER) as file:
        assert file.append(content[:3]) == 0
        assert file.append(content[3:]) == 3
        path = file.finish()
    assert path is not None
    return path


def test_a_finished_file_survives_any_power_cut() -> None:
    files = MemoryFiles()
    path = stage(files)
    end = len(files.journal)
    states = list(crash_states(files, begin=end))
    assert states
    for state in states:
        found = MemoryFiles(None, state.disk)
        assert found.read(path, 100) == b"one batch", state.name


def test_nothing_is_created_without_content() -> None:
    files = MemoryFiles()
    with StagedFile(files, FOLDER) as file:
        assert file.finish() is None
    assert not files.exists(FOLDER)


def test_an_error_leaves_no_file() -> None:
    files = MemoryFiles()

    def fail() -> None:
        with StagedFile(files, FOLDER) as file:
            file.append(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert files.list(FOLDER) == []


def test_two_files_do_not_meet() -> None:
    files = MemoryFiles()
    assert stage(files) != stage(files)
    assert len(files.list(FOLDER)) == 2


def test_orphans_are_staged_files_of_an_age() -> None:
    files = MemoryFiles()
    old, young = stage(files), stage(files)
    files.set_modified_ms(old, 1000)
    files.set_modified_ms(young, 2000)
    for name in ("notes.txt", f"{'0' * 31}.staged", f"{'0' * 32}.staged.tmp"):
        write_durably(files, f"{FOLDER}/{name}", b"of somebody else")
    assert [(each.path, each.size, each.modified_ms) for each in orphans(files, FOLDER, 2000)] == [
        (old, 9, 1000)
    ]
    assert {each.path for each in orphans(files, FOLDER, 2001)} == {old, young}
    remove_staged(files, old)
    remove_staged(files, old)  # it is gone
    assert [each.path for each in orphans(files, FOLDER, 3000)] == [young]


def test_the_folder_is_beside_the_target() -> None:
    files = MemoryFiles()
    stage(files)
    assert staging_beside(files, "/shared/data") == FOLDER
    assert staging_beside(files, FOLDER) == FOLDER
    assert staging_beside(files, "/elsewhere") == "/elsewhere"
    with pytest.raises(FileNotFoundError):
        list(orphans(files, "/elsewhere", 0))
