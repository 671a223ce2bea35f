"""Damage to derived files does not change the answers of an owner that opens the directory.

Each derived file of intact directories is removed, emptied, truncated and filled with garbage, alone and
together with all others of its kind, after a clean stop and after a kill.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from tests.golden.cases import ISOLATION_LEVELS, case
from tests.golden.consumer import consume
from tests.golden.directories import Directory
from tests.golden.test_recovery import offsets, opened, overlay, producers, remembered
from txnkafka.env.overlay import OverlayFiles
from txnkafka.model import TopicPartition

KINDS = {".index": 8, ".timeindex": 12, ".txnindex": 34, ".snapshot": 46, "checkpoint": 1}
ENTRY = struct.Struct(">ii")
MARKER = ".kafka_cleanshutdown"
DIRECTORIES = [
    Directory(case(name), directory, TopicPartition(topic, partition))
    for name, directory, topic, partition in (
        ("interleaved", "logs", "orders", 0),
        ("open", "logs", "open", 1),
        ("crash", "recovered", "crash", 0),
        ("compacted", "logs", "stuck", 0),
        ("legacy_on_4", "logs", "upgraded", 3),
        ("deleted", "logs", "gone", 1),
    )
]
# Batches of producers are below the log start, or were compacted: only snapshots have their state.
ONLY_IN_SNAPSHOTS = {"deleted", "compacted"}


def removed(content: bytes, size: int) -> bytes | None:
    return None


def emptied(content: bytes, size: int) -> bytes:
    return b""


def cut_by_a_byte(content: bytes, size: int) -> bytes:
    return content[:-1]


def cut_by_an_entry(content: bytes, size: int) -> bytes:
    return content[: max(0, len(content) - size)]


def cut_by_half(content: bytes, size: int) -> bytes:
    return content[: len(content) // 2 // size * size]


def garbage(content: bytes, size: int) -> bytes:
    return random.Random(len(content)).randbytes(max(size, len(content)))


def zeros(content: bytes, size: int) -> bytes:
    return bytes(len(content))


DAMAGES: list[Callable[[bytes, int], bytes | None]] = [
    removed,
    emptied,
    cut_by_a_byte,
    cut_by_an_entry,
    cut_by_half,
    garbage,
    zeros,
]


def derived(directory: Directory, kind: str) -> list[str]:
    files = overlay()
    path = f"{directory.path}/{directory.partition}"
    return [f"{path}/{each.name}" for each in files.list(path) if each.name.endswith(kind)]


def groups(directory: Directory, kind: str) -> Iterator[list[str]]:
    names = derived(directory, kind)
    yield from ([name] for name in names)
    if len(names) > 1:
        yield names


def replace(files: OverlayFiles, path: str, content: bytes | None) -> None:
    files.remove(path)
    if content is not None:
        files.create(path).write(0, [content])


def check(files: OverlayFiles, directory: Directory, *, knows_producers: bool) -> None:
    found = opened(files, directory.path, directory.case.recorded_at_ms)
    assert found.refused == {}
    log, facts = found.logs[directory.partition], directory.case.facts(directory.partition)
    assert offsets(log) == (facts["log_start_offset"], facts["lso"], facts["high_watermark"])
    for level in ISOLATION_LEVELS:
        assert consume(log, level) == (directory.case.expected_records(directory.partition, level), None)
    if knows_producers and "describe_producers" in facts:
        expected = remembered(facts["describe_producers"], directory.case.recorded_at_ms)
        assert producers(log) == expected


@pytest.mark.parametrize("marker", ["clean", "killed"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directory", DIRECTORIES, ids=str)
def test_answers_stay(
    directory: Directory, kind: str, damage: Callable[[bytes, int], bytes | None], marker: str
) -> None:
    for names in groups(directory, kind):
        files = overlay()
        if marker == "killed":
            files.remove(f"{directory.path}/{MARKER}")
        for name in names:
            replace(files, name, damage(files.read(name, 1 << 20), KINDS[kind]))
        knows_producers = kind != ".snapshot" or directory.case.name not in ONLY_IN_SNAPSHOTS
        check(files, directory, knows_producers=knows_producers)


@pytest.mark.parametrize("marker", ["clean", "killed"])
@pytest.mark.parametrize("directory", DIRECTORIES, ids=str)
def test_without_any_derived_file(directory: Directory, marker: str) -> None:
    files = overlay()
    if marker == "killed":
        files.remove(f"{directory.path}/{MARKER}")
    for kind in KINDS:
        for name in derived(directory, kind):
            files.remove(name)
    check(files, directory, knows_producers=directory.case.name not in ONLY_IN_SNAPSHOTS)


Entries = list[tuple[int, int]]


def moved(entries: Entries) -> Entries:
    return [(offset, position + 7) for offset, position in entries]


def of_the_batch_before(entries: Entries) -> Entries:
    return [(offset - 1, position) for offset, position in entries]


def of_the_next_entry(entries: Entries) -> Entries:
    return [(offset, position) for (offset, _), (_, position) in pairwise(entries)]


@pytest.mark.parametrize("marker", ["clean", "killed"])
@pytest.mark.parametrize(
    "lie", [moved, of_the_batch_before, of_the_next_entry], ids=lambda lie: lie.__name__
)
@pytest.mark.parametrize("directory", DIRECTORIES[:3], ids=str)
def test_a_valid_index_with_wrong_entries(
    directory: Directory, lie: Callable[[Entries], Entries], marker: str
) -> None:
    for name in derived(directory, ".index"):
        files = overlay()
        if marker == "killed":
            files.remove(f"{directory.path}/{MARKER}")
        entries = [*ENTRY.iter_unpack(files.read(name, 1 << 20))]
        replace(files, name, b"".join(ENTRY.pack(*each) for each in lie(entries)))
        found = opened(files, directory.path, directory.case.recorded_at_ms)
        log = found.logs[directory.partition]
        for level in ISOLATION_LEVELS:
            records = directory.case.expected_records(directory.partition, level)
            assert consume(log, level, max_bytes=1) == (records, None)
