"""All units by enumeration: every offset range, every set of hidden transactions and every unit size gives
the same records as a filter over all records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.logdir.logs import batch, segment
from txnkafka._core.scan import scan
from txnkafka.logdir.plan import NEVER, DamagedBatch, HiddenRange, ReadUnit, SegmentMap, cuts_of, read_units
from txnkafka.logdir.read import read_unit
from txnkafka.record.chunk import ChunkDecoder


class Written(NamedTuple):
    """A batch: its offsets and its producer, -1 for one without a transaction."""

    base: int
    count: int
    producer_id: int

    @property
    def last(self) -> int:
        return self.base + self.count - 1


# transactions end in batches of one record: at the end of a segment, at the log end, and before a gap
SEGMENTS = [
    [Written(0, 2, 1), Written(2, 1, -1), Written(3, 1, 1)],
    [Written(4, 3, 2), Written(7, 1, 1)],
    [Written(9, 1, 2), Written(10, 2, -1), Written(12, 1, 1)],
]
BATCHES = [each for written in SEGMENTS for each in written]
END = 13


def hidden_sets() -> Iterator[tuple[HiddenRange, ...]]:
    """Generate none, one or two transactions, each from the first to the last of some batches of a
    producer."""
    ranges = [
        HiddenRange(producer, first.base, last.last)
        for producer in (1, 2)
        for first in BATCHES
        for last in BATCHES
        if first.producer_id == last.producer_id == producer and first.base <= last.base
    ]
    yield ()
    yield from ((each,) for each in ranges)
    for one, other in combinations(ranges, 2):
        if one.producer_id != other.producer_id or one.last_offset < other.first_offset:
            yield one, other


def seen(hidden: tuple[HiddenRange, ...], start: int, end: int) -> list[int]:
    """The model: a record is hidden by a range that contains its whole batch."""
    return [
        offset
        for each in BATCHES
        for offset in range(each.base, each.base + each.count)
        if start <= offset < end
        and not any(
            found.producer_id == each.producer_id
            and found.first_offset <= each.base
            and each.last <= found.last_offset
            for found in hidden
        )
    ]


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[SegmentMap]]:
    """Return the segments, with a unit for each batch, for two batches, and for each segment."""
    folder = tmp_path_factory.mktemp("segments")
    found: dict[int, list[SegmentMap]] = {}
    for size, (number, written) in product((1, 100, 1 << 20), enumerate(SEGMENTS)):
        data = b"".join(
            batch(each.base, each.count, producer_id=each.producer_id, transactional=each.producer_id >= 0)
            for each in written
        )
        path = folder / f"{written[0].base:020d}.log"
        path.write_bytes(data)
        cuts = cuts_of(scan(data), written[0].base, size)
        limit = SEGMENTS[number + 1][0].base if number + 1 < len(SEGMENTS) else END
        found.setdefault(size, []).append(SegmentMap(str(path), cuts, limit))
    assert [sum(len(each.cuts) - 1 for each in maps) for maps in found.values()] == [8, 5, 3]
    return found


def read(unit: ReadUnit) -> list[int]:
    path = Path(unit.path)
    opened = segment(path, path.read_bytes(), mapped=False)
    try:
        return [
            offset
            for columns in read_unit(opened, unit, ChunkDecoder())
            for offset in memoryview(columns.offsets).tolist()
        ]
    finally:
        opened.close()


@pytest.mark.slow
def test_every_range_and_every_hidden_transaction(maps: dict[int, list[SegmentMap]]) -> None:
    known: dict[ReadUnit, list[int]] = {}
    for size, hidden in product(maps, hidden_sets()):
        for start in range(END + 1):
            for end in range(start, END + 1):
                units = read_units("t", 0, maps[size], hidden, start_offset=start, end_offset=end)
                for unit in units:
                    if unit not in known:
                        known[unit] = read(unit)
                found = [offset for unit in units for offset in known[unit]]
                assert found == seen(hidden, start, end), (size, hidden, start, end)
                for before, after in pairwise(units):
                    assert before.end_offset <= after.start_offset


def test_a_unit_names_its_own_latest_timestamp_and_hides_nothing_beside_it(
    maps: dict[int, list[SegmentMap]],
) -> None:
    for size, hidden in product(maps, hidden_sets()):
        for unit in read_units("t", 0, maps[size], hidden, start_offset=0, end_offset=END):
            inside = [each for each in BATCHES if unit.start_offset <= each.base < unit.end_offset]
            assert unit.max_timestamp == max(1000 + each.last for each in inside)
            assert set(unit.hidden) == {
                each
                for each in hidden
                if each.first_offset < unit.end_offset and unit.start_offset <= each.last_offset
            }


def test_damage_is_wanted_where_it_may_hold_a_wanted_offset() -> None:
    """A batch that cannot be read is at position 100 and may have offsets in [4, 7)."""
    damaged = DamagedBatch(100, 50, 4, 7, "no CRC")
    index = scan(batch(0, 4))
    cuts = [*cuts_of(index, 0, 1), *cuts_of(index, 0, 1)[1:]]
    cuts[-1] = cuts[-1]._replace(position=200, next_offset=10)
    for start in range(11):
        for end in range(start, 11):
            units = read_units(
                "t", 0, [SegmentMap("x", cuts, 10, [damaged])], start_offset=start, end_offset=end
            )
            met = [each for unit in units for each in unit.damage]
            assert any(each.wanted for each in met) == (start < 7 and end > 4), (start, end)
            assert len(met) <= 1


def test_damage_behind_the_last_batch_comes_with_a_unit_of_no_bytes() -> None:
    data = batch(0, 2)
    damaged = DamagedBatch(len(data), 0, 2, 9, "no header")
    segments = [SegmentMap("x", cuts_of(scan(data), 0, 1), 9, [damaged])]
    for start in range(10):
        for end in range(start, 10):
            units = read_units("t", 0, segments, start_offset=start, end_offset=end)
            tails = [unit for unit in units if unit.start_position == unit.end_position]
            assert [unit.max_timestamp for unit in tails] == [NEVER] * (start < 9 and end > 2)
