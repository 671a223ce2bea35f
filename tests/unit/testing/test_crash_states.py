"""The states that a power cut may leave: they lose exactly what was not synced, have names and are
repeatable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.env import DataFile
from txnkafka.testing.crash_states import crash_state, crash_states
from txnkafka.testing.disk import Disk
from txnkafka.testing.memory_files import MemoryFiles

CALLS = ["create", "write", "truncate", "sync", "rename", "remove", "directory", "sync_directory"]


def tree(disk: Disk, path: str = "", inode: int = 0) -> Iterator[tuple[str, bytes | None]]:
    """Yield paths with contents; None for directories."""
    for name, each in sorted(disk.names[inode].items()):
        yield f"{path}/{name}", disk.contents.get(each)
        if each in disk.names:
            yield from tree(disk, f"{path}/{name}", each)


def at_the_end(files: MemoryFiles) -> list[dict[str, bytes | None]]:
    return [dict(tree(each.disk)) for each in crash_states(files, begin=len(files.journal))]


def contents(files: MemoryFiles, path: str) -> set[bytes | None]:
    """Return the possible contents of a file at the end; None: the file does not exist."""
    return {each.get(path) for each in at_the_end(files)}


def durable_file(files: MemoryFiles, path: str, content: bytes) -> DataFile:
    file = files.create(path)
    file.write(0, [content])
    file.sync()
    files.sync_directory("/")
    return file


def test_synced_data_is_kept() -> None:
    files = MemoryFiles()
    durable_file(files, "/a", b"abc")
    assert at_the_end(files) == [{"/a": b"abc"}]


def test_without_a_sync_of_the_file_its_content_may_be_missing_or_torn() -> None:
    files = MemoryFiles()
    files.create("/a").write(0, [b"abc"])
    files.sync_directory("/")
    assert contents(files, "/a") == {b"abc", b"", b"a", b"ab", b"\0\0\0", b"ab\0"}


def test_without_a_sync_of_the_directory_the_name_may_be_missing() -> None:
    files = MemoryFiles()
    file = files.create("/a")
    file.write(0, [b"abc"])
    file.sync()
    assert contents(files, "/a") == {b"abc", None}


def test_a_rename_is_one_step() -> None:
    files = MemoryFiles()
    durable_file(files, "/a", b"new")
    durable_file(files, "/b", b"old")
    files.rename("/a", "/b")
    states = at_the_end(files)
    assert len(states) == 2
    assert {"/b": b"new"} in states
    assert {"/a": b"new", "/b": b"old"} in states


def test_what_is_renamed_before_its_sync_may_be_empty_under_the_new_name() -> None:
    files = MemoryFiles()
    durable_file(files, "/b", b"old")
    fresh = files.create("/a")
    fresh.write(0, [b"new"])
    files.rename("/a", "/b")
    assert {"/b": b""} in at_the_end(files)
    fresh.sync()
    assert contents(files, "/b") == {b"old", b"new"}


def test_what_was_removed_may_be_back() -> None:
    files = MemoryFiles()
    durable_file(files, "/a", b"abc")
    files.remove("/a")
    assert contents(files, "/a") == {None, b"abc"}
    files.sync_directory("/")
    assert at_the_end(files) == [{}]


def test_a_truncation_may_be_missing() -> None:
    files = MemoryFiles()
    file = durable_file(files, "/a", b"abcdef")
    file.truncate(2)
    file.write(2, [b"X"])
    assert {b"abXdef", b"ab", b"abX", b"abcdef"} <= contents(files, "/a")
    file.sync()
    assert contents(files, "/a") == {b"abX"}


def test_a_new_directory_may_be_missing_with_everything_in_it() -> None:
    files = MemoryFiles()
    files.make_directory("/d")
    file = files.create("/d/a")
    file.sync()
    files.sync_directory("/d")
    assert sorted(map(len, at_the_end(files))) == [0, 2]


def test_one_directory_is_synced_without_the_other() -> None:
    files = MemoryFiles()
    for name in ("/d", "/e"):
        files.make_directory(name)
    files.sync_directory("/")
    for name in ("/d/a", "/e/b"):
        files.create(name).sync()
    found = [{name for name in each if len(name) > 2} for each in at_the_end(files)]
    assert sorted(map(sorted, found)) == [[], ["/d/a"], ["/d/a", "/e/b"], ["/e/b"]]
    files.sync_directory("/e")
    assert all("/e/b" in each for each in at_the_end(files))


def test_a_file_moved_durably_to_another_directory_has_no_other_name() -> None:
    files = MemoryFiles()
    for name in ("/d", "/e"):
        files.make_directory(name)
    files.sync_directory("/")
    files.create("/d/a").sync()
    files.rename("/d/a", "/e/a")
    files.sync_directory("/e")
    assert at_the_end(files) == [{"/d": None, "/e": None, "/e/a": b""}]


def test_a_file_moved_to_another_directory_may_be_lost_when_only_the_first_is_synced() -> None:
    files = MemoryFiles()
    for name in ("/d", "/e"):
        files.make_directory(name)
    files.sync_directory("/")
    files.create("/d/a").sync()
    files.sync_directory("/d")
    files.rename("/d/a", "/e/a")
    directories: dict[str, bytes | None] = {"/d": None, "/e": None}
    assert {**directories, "/d/a": b""} in at_the_end(files)
    files.sync_directory("/d")
    assert at_the_end(files) == [{**directories, "/e/a": b""}, directories]
    files.sync_directory("/e")
    assert at_the_end(files) == [{**directories, "/e/a": b""}]


def test_a_later_file_may_be_there_without_an_earlier_one() -> None:
    files = MemoryFiles()
    first, second, third = (durable_file(files, name, b"") for name in ("/a", "/b", "/c"))
    for file in (first, second, third):
        file.write(0, [b"x"])
    found = {tuple(each.values()) for each in at_the_end(files)}
    assert {(b"", b"x", b"x"), (b"", b"x", b""), (b"", b"", b"x"), (b"x", b"", b"x")} <= found


def test_writes_are_torn_at_sectors_and_in_headers() -> None:
    files = MemoryFiles()
    file = durable_file(files, "/a", bytes(100))
    file.write(100, [b"x" * 2000])
    sizes = {len((each or b"").rstrip(b"\0")) for each in contents(files, "/a")}
    assert {512, 1024, 1536, 2048, 2100, 101, 178} <= sizes
    assert 179 not in sizes


def test_a_written_sector_may_be_followed_by_zeros() -> None:
    files = MemoryFiles()
    file = durable_file(files, "/a", bytes(100))
    file.write(100, [b"x" * 2000])
    found = contents(files, "/a")
    assert {bytes(100) + b"x" * (end - 100) + bytes(2100 - end) for end in (512, 1024, 2048)} <= found


def test_a_write_in_the_middle_may_be_missing() -> None:
    files = MemoryFiles()
    file = durable_file(files, "/a", b"")
    for position in range(3):
        file.write(position, [b"x"])
    assert {b"\0xx", b"x\0x", b"xx", b"xxx", b"xx\0", b"\0\0\0", b""} <= contents(files, "/a")


def test_a_sync_that_failed_is_not_made_good_by_a_later_one() -> None:
    files = MemoryFiles()
    file = files.create("/a")
    files.sync_directory("/")
    file.write(0, [b"x"])
    file.fail_sync()
    file.write(1, [b"y"])
    file.sync()
    assert contents(files, "/a") == {b"xy", b"\0y"}
    file.truncate(0)
    file.write(0, [b"z"])
    file.sync()
    assert contents(files, "/a") == {b"z"}


def test_every_state_can_be_made_again_by_its_name() -> None:
    files = MemoryFiles()
    file = files.create("/a")
    file.write(0, [b"abc"])
    files.rename("/a", "/b")
    states = list(crash_states(files))
    assert len({each.name for each in states}) == len(states) > 5
    assert [crash_state(files, each.name) for each in states] == states
    with pytest.raises(ValueError, match="3 changes have no crash state 'nonsense'"):
        crash_state(files, "nonsense")


def test_a_sample_is_repeatable_and_spread() -> None:
    files = MemoryFiles()
    file = durable_file(files, "/a", b"")
    for number in range(40):
        file.write(number * 60, [bytes([number]) * 60])
    sample = [each.name for each in crash_states(files, limit=300)]
    assert sample == [each.name for each in crash_states(files, limit=300)]
    assert sample != [each.name for each in crash_states(files, limit=300, seed=1)]
    assert 100 < len(sample) <= 300
    moments = {int(each.partition("/")[0]) for each in sample}
    assert min(moments) < 10
    assert max(moments) == 43


def test_states_that_look_alike_come_again_when_more_is_expected() -> None:
    files = MemoryFiles()
    durable_file(files, "/a", b"abc")
    states = list(crash_states(files))
    more = list(crash_states(files, news={len(files.journal)}))
    assert len(more) == len(states) + 1


def test_changes_of_a_recovery_can_be_lost_too() -> None:
    files = MemoryFiles()
    file = durable_file(files, "/a", b"old")
    file.write(0, [b"new!"])
    (torn,) = (state for state in crash_states(files) if "torn 4 1," in state.name)
    recovered = MemoryFiles(base=torn.disk)
    assert recovered.read("/a", 9) == b"nld"
    recovered.open_to_write("/a").truncate(1)
    assert contents(recovered, "/a") == {b"n", b"nld"}
    assert files.read("/a", 9) == b"new!"


def make(files: MemoryFiles, call: str, name: str, other: str, number: int) -> None:
    if call == "create":
        files.create(name)
    elif call == "directory":
        files.make_directory(name)
    elif call == "rename":
        files.rename(name, other)
    elif call == "remove":
        files.remove(name)
    elif call == "sync_directory":
        files.sync_directory(files.split(name)[0])
    elif call == "write":
        files.open_to_write(name).write(number, [bytes([number + 1]) * number])
    elif call == "truncate":
        files.open_to_write(name).truncate(number)
    else:
        files.open_to_write(name).sync()


NAMES = st.sampled_from(["/a", "/b", "/d", "/d/a", "/d/b"])


@given(st.lists(st.tuples(st.sampled_from(CALLS), NAMES, NAMES, st.integers(0, 9)), max_size=30))
def test_with_everything_kept_nothing_is_lost(calls: list[tuple[str, str, str, int]]) -> None:
    files = MemoryFiles()
    then = [dict(tree(files.disk()))]
    for call in calls:
        try:
            make(files, *call)
        except OSError:
            continue
        while len(then) <= len(files.journal):
            then.append(dict(tree(files.disk())))
    for number, expected in enumerate(then):
        kept = crash_state(files, f"{number}/{len(files.journal)} kept, names kept")
        assert dict(tree(kept.disk)) == expected
    sync_everything(files)
    assert at_the_end(files) == [then[-1]]


def sync_everything(files: MemoryFiles) -> None:
    for path, content in tree(files.disk()):
        if content is None:
            files.sync_directory(path)
        else:
            files.open_to_write(path).sync()
    files.sync_directory("/")


@given(st.lists(st.tuples(st.sampled_from(CALLS), NAMES, NAMES, st.integers(0, 9)), max_size=30))
def test_with_everything_lost_it_is_what_was_synced(calls: list[tuple[str, str, str, int]]) -> None:
    """A simple model: each file as at its own last sync, each directory as at its own."""
    files = MemoryFiles()
    contents: dict[int, bytes] = {}
    names: dict[int, Mapping[str, int]] = {}
    for call, name, other, number in calls:
        if call == "rename" and files.split(name)[0] != files.split(other)[0]:
            continue
        try:
            make(files, call, name, other, number)
        except OSError:
            continue
        disk, inode = files.disk(), files.journal[-1].inode if files.journal else 0
        if call == "sync":
            contents[inode] = disk.contents[inode]
        elif call == "sync_directory":
            names[inode] = disk.names[inode]
    disk = files.disk()
    synced = Disk(
        {inode: contents.get(inode, b"") for inode in disk.contents},
        {inode: names.get(inode, {}) for inode in disk.names},
        disk.modified_ms,
        disk.next_inode,
    )
    assert dict(tree(synced)) in at_the_end(files)
    changes = len(files.journal)
    with suppress(ValueError):  # there is nothing to lose
        lost = crash_state(files, f"{changes}/{changes} lost, names lost")
        assert dict(tree(lost.disk)) == dict(tree(synced))
