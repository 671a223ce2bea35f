"""One segment: which batches it indexes, finds, truncates and keeps."""

from __future__ import annotations

import pytest

from tests.unit.storage.client import NOW, PATH, data
from txnkafka._core.validate import read_batch
from txnkafka.config import LogConfig
from txnkafka.env import make_directories
from txnkafka.storage.formats.index import OffsetIndex, TimeIndex
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.testing.memory_files import MemoryFiles

SIZE = len(data(count=1))


def segment(count: int = 0, *, interval: int = 100, base: int = 0, step: int = 10) -> LogSegment:
    """Return a segment of ``count`` batches of one record each, their timestamps ``step`` apart."""
    files = MemoryFiles()
    make_directories(files, PATH)
    found = LogSegment(files, PATH, base, LogConfig(index_interval_bytes=interval), created_ms=NOW)
    found.files.create("log")
    for offset in range(base, base + count):
        append(found, offset, NOW + step * (offset - base))
    return found


def append(to: LogSegment, offset: int, timestamp: int) -> None:
    to.append(read_batch(data(count=1, timestamp=timestamp, base_offset=offset)))


def offsets(of: LogSegment) -> list[tuple[int, int]]:
    return list(OffsetIndex.entry.iter_unpack(of.offset_index.content))


def times(of: LogSegment) -> list[tuple[int, int]]:
    return list(TimeIndex.entry.iter_unpack(of.time_index.content))


def test_an_entry_is_added_after_more_than_the_interval() -> None:
    """An entry has the offset and the position of the next batch; the first batch is never indexed."""
    found = segment(8, interval=2 * SIZE)
    assert offsets(found) == [(3, 3 * SIZE), (6, 6 * SIZE)]
    assert times(found) == [(NOW + 30, 3), (NOW + 60, 6)]
    assert offsets(segment(3, interval=0)) == [(1, SIZE), (2, 2 * SIZE)]


def test_times_that_do_not_grow_are_not_indexed() -> None:
    found = segment(5, interval=0, step=-10)
    assert times(found) == [(NOW, 0)]
    found.seal()
    assert times(found) == [(NOW, 0)]
    found = segment(2)
    found.seal()
    found.seal()
    assert times(found) == [(NOW + 10, 1)]


def test_offsets_are_relative_to_the_base() -> None:
    found = segment(3, interval=0, base=50)
    assert offsets(found) == [(1, SIZE), (2, 2 * SIZE)]
    assert found.fits(50 + 2**31 - 1)
    assert not found.fits(50 + 2**31)
    assert not found.fits(49)


@pytest.mark.parametrize("interval", [0, 300, 10**6])
def test_a_batch_is_found_by_any_of_its_offsets(interval: int) -> None:
    found = segment(20, interval=interval, base=100)
    for offset in range(100, 120):
        assert found.find(offset) == ((offset - 100) * SIZE, SIZE, offset, offset)
    assert found.find(99) == (0, SIZE, 100, 100)
    assert found.find(120) is None
    assert segment().find(0) is None


@pytest.mark.parametrize("entry", [(15, 7), (5, 10**6), (19, 3 * SIZE)])
def test_an_index_with_a_wrong_entry_is_rebuilt(entry: tuple[int, int]) -> None:
    found = segment(20, interval=300)
    sound = bytes(found.offset_index.content)
    found.offset_index = OffsetIndex.owned(0, OffsetIndex.entry.pack(*entry))
    assert [found.find(offset) for offset in range(20)] == [(o * SIZE, SIZE, o, o) for o in range(20)]
    assert bytes(found.offset_index.content) == sound or entry == (19, 3 * SIZE)


def test_what_is_saved_is_loaded_again() -> None:
    found = segment(9, interval=200)
    found.seal()
    found.save()
    found.sync()
    before = offsets(found), times(found)
    found.unload()
    assert len(found.offset_index) == 0
    assert found.find(8) == (8 * SIZE, SIZE, 8, 8)
    assert (offsets(found), times(found)) == before
    assert (found.max_timestamp, found.max_timestamp_offset) == (NOW + 80, 8)


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_an_index_without_a_file_is_made_from_the_log(kind: str) -> None:
    found = segment(9, interval=200)
    found.seal()
    found.save()
    before = offsets(found), times(found)
    found.unload()
    found.close()
    found.files.data_files.remove(found.path(kind))  # type: ignore[arg-type]
    found.load()
    found.seal()
    assert (offsets(found), times(found)) == before


def test_indexes_that_are_not_in_their_files_stay_in_memory() -> None:
    found = segment(9, interval=200)
    found.unload()
    assert len(found.offset_index) > 0


@pytest.mark.parametrize("offset", [0, 4, 9])
def test_a_cut(offset: int) -> None:
    found = segment(10, interval=0)
    found.seal()
    found.save()
    found.truncate(offset * SIZE, offset)
    found.save()
    kept = segment(offset, interval=0)
    assert found.size == kept.size == offset * SIZE
    assert offsets(found) == offsets(kept)
    assert (found.max_timestamp, found.max_timestamp_offset) == (
        kept.max_timestamp,
        kept.max_timestamp_offset,
    )
    append(found, offset, NOW)
    assert found.find(offset) == (offset * SIZE, SIZE, offset, offset)


def test_names_of_deleted_files() -> None:
    found = segment(3)
    found.save()
    renamed = found.files.mark_deleted()
    assert [path.removeprefix(f"{PATH}/00000000000000000000") for path in renamed] == [
        ".log.deleted", ".index.deleted", ".timeindex.deleted",
    ]  # fmt: skip


# Index files


def test_an_index_file_grows_and_shrinks() -> None:
    files = MemoryFiles()
    file = files.create("/index")
    index = OffsetIndex.owned(0)
    for number in range(1, 6):
        index.append(number, 10 * number)
    index.save(file)
    assert (file.size(), index.is_saved, index.last()) == (40, True, (5, 50))
    index.keep(2)
    index.append(7, 70)
    assert not index.is_saved
    index.save(file)
    assert files.read("/index", 100) == b"".join(OffsetIndex.entry.pack(n, 10 * n) for n in (1, 2, 7))


@pytest.mark.parametrize("rest", [b"", b"\1\2\3", bytes(80), bytes(5)])
def test_bytes_that_are_no_entry_are_removed_from_an_index(rest: bytes) -> None:
    files = MemoryFiles()
    file = files.create("/index")
    content = OffsetIndex.entry.pack(1, 10) + OffsetIndex.entry.pack(2, 2**24)
    file.write(0, [content + rest])
    index = OffsetIndex.owned(0, content + rest)
    assert len(index) == 2
    index.append(3, 2**25)
    index.save(file)
    assert files.read("/index", 200) == content + OffsetIndex.entry.pack(3, 2**25)
