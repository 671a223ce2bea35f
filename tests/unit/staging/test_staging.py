"""The staging protocol over every crash: a part takes effect once, with all of its files, or not yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from txnkafka.staging import StagingArea, begin_attempt, publish, record_attempt
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

JOB, OUTPUT = "/out/_job", "/out"
PARTS = 3


class Part(NamedTuple):
    number: int
    name: str
    files: list[str]


def parse(record: bytes) -> Part:
    return Part(*json.loads(record))


def area_of(files: MemoryFiles) -> StagingArea[Part]:
    return StagingArea(files, JOB, parse)


def attempt(files: MemoryFiles, number: int) -> Part:
    """Make a part: two files that contain its number."""
    name, folder = made = begin_attempt(files, area_of(files).staging, number)
    for file in "ab":
        opened = files.create(f"{folder}/{file}")
        opened.write(0, [b"%d" % number])
        opened.sync()
        opened.close()
    files.sync_directory(folder)
    part = Part(number, name, ["a", "b"])
    record_attempt(files, made, json.dumps(part).encode())
    return part


def show(files: MemoryFiles, part: Part) -> None:
    staging = area_of(files).staging
    publish(files, [(f"{staging}/{part.name}/{each}", target(part, each)) for each in part.files])


def target(part: Part, file: str) -> str:
    return f"{OUTPUT}/{part.number}/{file}"


def run(files: MemoryFiles) -> None:
    """Begin or continue the job; some parts are made twice."""
    area = area_of(files)
    area.create()
    for part in area.counted():
        show(files, part)
    done = {part.number for part in area.counted()}
    waiting = {part.number: part for part in area.staged() if part.number not in done}
    for number in range(PARTS):
        if number not in done:
            part = waiting.get(number) or attempt(files, number)
            if number == 1:
                part = attempt(files, number)
            area.count(part)
            show(files, part)


def visible(files: MemoryFiles) -> Iterator[tuple[int, str, bytes]]:
    for number in range(PARTS):
        for file in "ab":
            path = f"{OUTPUT}/{number}/{file}"
            if files.exists(path):
                yield number, file, files.read(path, 10)


def test_a_part_counts_once_after_any_crash() -> None:
    files = MemoryFiles()
    run(files)
    whole = [(number, file, b"%d" % number) for number in range(PARTS) for file in "ab"]
    assert list(visible(files)) == whole
    states = 0
    for state in crash_states(files, limit=400):
        found = MemoryFiles(None, state.disk)
        counting = f"{JOB}/units"
        counted = {part.number for part in area_of(found).counted()} if found.exists(counting) else set()
        seen = list(visible(found))
        assert {number for number, _, _ in seen} <= counted, state.name
        assert set(seen) <= set(whole), state.name
        run(found)
        assert list(visible(found)) == whole, state.name
        assert [part.number for part in area_of(found).counted()] == list(range(PARTS)), state.name
        states += 1
    assert states > 50


def test_attempts_do_not_meet_and_one_counts() -> None:
    files = MemoryFiles()
    area = area_of(files)
    area.create()
    first, second = attempt(files, 7), attempt(files, 7)
    assert first.name != second.name
    assert {part.name for part in area.staged()} == {first.name, second.name}
    area.count(second)
    assert [part.name for part in area.counted()] == [second.name]
    assert [part.name for part in area.staged()] == [first.name]
    area.clear()
    assert not files.exists(area.staging)


def test_a_published_file_that_is_gone() -> None:
    files = MemoryFiles()
    area_of(files).create()
    part = attempt(files, 0)
    show(files, part)
    show(files, part)  # again, after a crash
    files.remove(target(part, "b"))
    with pytest.raises(FileNotFoundError, match="/out/0/b"):
        show(files, part)
