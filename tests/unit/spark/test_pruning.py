"""Which units a lower bound of the timestamp drops, and how damage in them is handled: read in this process,
without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.predicate import chosen, written
from tests.unit.logdir.logs import write_log
from txnkafka import CorruptRecordError
from txnkafka.spark.options import read_options
from txnkafka.spark.plan import plan_tasks
from txnkafka.spark.read import TaskReader
from txnkafka.spark.schema import batch_schema

# timestamps of the records of each batch: ascending, descending, equal, one record, without a timestamp
TIMES = [[5, 9], [9, 3], [4], [9], [-1], [7, 8, 7], [8]]
SEGMENTS = [(0, 3), (3, 5), (5, 7)]
OFFSET_OF = [sum(map(len, TIMES[:number])) for number in range(len(TIMES) + 1)]
EVERY = [time for times in TIMES for time in times]
ROWS = [{"offset": offset, "timestamp": time} for offset, time in enumerate(EVERY)]


def log(root: Path, **changes: bytes) -> str:
    """Write t-0 with these batches; ``b3=…`` replaces the bytes of batch 3."""
    batches = [
        changes.get(
            f"b{number}",
            Batch(
                records=[PlainRecord(b"k", b"v", time) for time in times], base_offset=OFFSET_OF[number]
            ).encode(),
        )
        for number, times in enumerate(TIMES)
    ]
    write_log(root, "t-0", {OFFSET_OF[begin]: batches[begin:end] for begin, end in SEGMENTS})
    return str(root)


def found(root: str, size: int, where: str, **keywords: Any) -> tuple[list[int], int]:
    """Return the offsets of the result, and the number of units that are read."""
    options = read_options(where=where, max_bytes_per_partition=size, **keywords)
    tasks = plan_tasks([root], options)
    batches = TaskReader(batch_schema(["offset"]), options)(tasks)
    offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    return offsets, sum(len(task.units) for task in tasks)


def latest_of_units(size: int) -> list[int]:
    if size == 1:
        return [max(times) for times in TIMES]
    return [max(time for times in TIMES[begin:end] for time in times) for begin, end in SEGMENTS]


EARLIEST = {">": lambda value: value + 1, ">=": lambda value: value, "=": lambda value: value}


@pytest.mark.parametrize("size", [1, 1 << 20], ids=["a unit for each batch", "a unit for each segment"])
@pytest.mark.parametrize("operator", [*EARLIEST, "<", "<=", "!=", "in"])
def test_a_unit_is_dropped_when_its_latest_timestamp_lies_below_the_bound(
    tmp_path: Path, operator: str, size: int
) -> None:
    root = log(tmp_path)
    for value in range(-2, 12):
        values = (value, value + 2) if operator == "in" else (value,)
        tree = (operator, "timestamp", *values)
        offsets, units = found(root, size, written(tree))
        assert offsets == [row["offset"] for row in ROWS if chosen(tree, row)], tree
        earliest = value if operator == "in" else EARLIEST.get(operator, lambda _: -100)(value)
        assert units == sum(latest >= earliest for latest in latest_of_units(size)), tree


def test_a_dropped_marker_changes_no_outcome(tmp_path: Path) -> None:
    """The marker is late and the data early, or the reverse."""
    for kind in (0, 1):
        for data, marker in ((3, 8), (8, 3)):
            root = tmp_path / f"{kind}-{data}"
            transaction = Batch(
                records=[PlainRecord(b"k", b"v", data)], transactional=True, producer_id=7, producer_epoch=0
            ).encode()
            end = end_marker(kind, base_offset=1, producer_id=7, producer_epoch=0, timestamp=marker)
            write_log(root, "t-0", {0: [transaction, end]})
            for value in range(2, 10):
                offsets, _ = found(str(root), 1, f"timestamp >= {value}")
                assert offsets == ([0] if kind and data >= value else [])


def flipped(number: int, place: int) -> bytes:
    times = TIMES[number]
    data = bytearray(
        Batch(
            records=[PlainRecord(b"k", b"v", time) for time in times], base_offset=OFFSET_OF[number]
        ).encode()
    )
    data[place] ^= 1
    return bytes(data)


LAST_BYTE, BASE_OFFSET, MAGIC = -1, 3, 16


def test_damage_in_what_a_bound_drops_is_not_looked_at(tmp_path: Path) -> None:
    """Batch 2 has offset 4 and timestamp 4. By its header none of its records is late enough."""
    root = log(tmp_path, b2=flipped(2, LAST_BYTE))
    for where in ("timestamp >= 5", "offset > 4", "offset < 4", "timestamp >= 5 and length(value) > 0"):
        offsets, _ = found(root, 1, where)
        assert 4 not in offsets
        assert offsets
    for where in ("timestamp >= 4", "offset >= 4", "timestamp < 5", "length(value) > 0"):
        with pytest.raises(CorruptRecordError, match=r"offset 4\b.*CRC|CRC.*offset 4\b"):
            found(root, 1, where)


def test_a_unit_that_is_read_for_another_batch_is_checked_whole(tmp_path: Path) -> None:
    root = log(tmp_path, b2=flipped(2, LAST_BYTE))
    with pytest.raises(CorruptRecordError, match="CRC"):
        found(root, 1 << 20, "timestamp >= 5")
    offsets, _ = found(root, 1 << 20, "timestamp >= 5", fail_on_data_loss=False)
    assert offsets == [row["offset"] for row in ROWS if row["timestamp"] >= 5]


@pytest.mark.parametrize("place", [BASE_OFFSET, MAGIC])
def test_damage_that_planning_sees_is_never_dropped_by_a_timestamp(tmp_path: Path, place: int) -> None:
    """A damaged header has no reliable timestamp."""
    root = log(tmp_path, b2=flipped(2, place))
    for where in ("timestamp >= 5", "timestamp >= 100", "timestamp = 9"):
        with pytest.raises(CorruptRecordError):
            found(root, 1, where)
        expected = [row["offset"] for row in ROWS if chosen(_tree(where), row)]
        assert found(root, 1, where, fail_on_data_loss=False)[0] == expected
    assert found(root, 1, "offset > 4 and timestamp >= 5")[0] == [5, 7, 8, 9, 10]
    assert found(root, 1, "offset < 4 and timestamp >= 5")[0] == [0, 1, 2]


@pytest.mark.parametrize("place", [BASE_OFFSET, MAGIC])
@pytest.mark.parametrize("number", range(4))
def test_a_limit_of_records_loses_no_damage_and_reports_it_once(
    tmp_path: Path, number: int, place: int
) -> None:
    root = log(tmp_path, **{f"b{number}": flipped(number, place)})
    everything, _ = found(root, 1 << 20, "offset >= 0", fail_on_data_loss=False)
    for size in (1, 1 << 20):
        for most in (1, 2, 3, 5, 12):
            with pytest.raises(CorruptRecordError):
                found(root, size, "offset >= 0", max_records_per_partition=most)
            options: dict[str, Any] = {"max_records_per_partition": most, "fail_on_data_loss": False}
            assert found(root, size, "offset >= 0", **options)[0] == everything
            tasks = plan_tasks([root], read_options(max_bytes_per_partition=size, **options))
            units = [unit for task in tasks for unit in task.units]
            planned = place == BASE_OFFSET  # the other is found when it is decoded
            assert sum(damaged.wanted for unit in units for damaged in unit.damage) == planned
            assert all(unit.start_offset < unit.end_offset or unit.damage for unit in units)
            assert len(units) <= len(EVERY) + 1


def _tree(where: str) -> tuple[str, str, int]:
    column, operator, value = where.split()
    return operator, column, int(value)
