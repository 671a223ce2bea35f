"""A file is replaced between plan and read, by compaction or with its topic. All batches have one size, so
the boundaries of the plan are boundaries of the new file, too."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, partition, write_log
from txnkafka.env import LocalFileSystem
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir import ReadUnit
from txnkafka.logdir.plan import BatchIdentity
from txnkafka.logdir.read import open_unit, read_unit
from txnkafka.record.chunk import ChunkDecoder

COUNT = 5
BATCHES = [batch(i, 1) for i in range(COUNT)]
SIZE = len(BATCHES[0])
CHANGED = "the file is not what it was when the read was planned: it has other batches"


def plan(root: Path, batches_of_a_unit: int) -> list[ReadUnit]:
    view = partition(root, {0: BATCHES, COUNT: [batch(COUNT)]})
    units = view.plan(end_offset=COUNT, unit_bytes=batches_of_a_unit * SIZE)
    view.close()
    return units


def read(unit: ReadUnit) -> list[int]:
    segment = open_unit(LocalFileSystem(), unit)
    try:
        return [offset for columns in read_unit(segment, unit, ChunkDecoder()) for offset in columns.offsets]
    finally:
        segment.close()


@pytest.mark.parametrize("batches_of_a_unit", [1, 2, COUNT])
def test_compaction_between_plan_and_read(tmp_path: Path, batches_of_a_unit: int) -> None:
    """Each unit gives its own records or the error."""
    for begin, end in product(range(COUNT), range(1, COUNT)):
        units = plan(tmp_path, batches_of_a_unit)
        kept = [i for i in range(2 * COUNT) if not begin <= i < begin + end]
        write_log(tmp_path, "t-0", {0: [batch(i, 1) for i in kept]})
        for unit in units:
            first = unit.start_position // SIZE
            planned = list(range(unit.start_offset, unit.end_offset))
            there = kept[first : first + len(planned)]
            if there[0] == planned[0] and there[-1] == planned[-1]:
                assert read(unit) == planned
            else:
                with pytest.raises(CorruptRecordError, match=CHANGED):
                    read(unit)


def test_no_record_is_given_before_the_first_batch_was_compared(tmp_path: Path) -> None:
    (unit,) = plan(tmp_path, COUNT)
    write_log(tmp_path, "t-0", {0: [*BATCHES[1:], batch(COUNT, 1)]})
    with pytest.raises(CorruptRecordError, match=CHANGED):
        next(read_unit(open_unit(LocalFileSystem(), unit), unit, ChunkDecoder(chunk_bytes=SIZE)))


@pytest.mark.parametrize("batches_of_a_unit", [1, 2, COUNT])
def test_a_topic_that_was_created_again_between_plan_and_read(tmp_path: Path, batches_of_a_unit: int) -> None:
    units = plan(tmp_path, batches_of_a_unit)
    write_log(tmp_path, "t-0", {0: [batch(i, 1, producer_id=7) for i in range(COUNT)]})
    for unit in units:
        assert unit.first_batch is not None
        assert unit.first_batch.base_offset == unit.start_offset
        with pytest.raises(CorruptRecordError, match=CHANGED):
            read(unit)


def test_joined_units_have_the_first_batch_of_the_first_and_the_last_of_the_last(tmp_path: Path) -> None:
    first, second, *_ = plan(tmp_path, 2)
    joined = first.joined(second)
    assert joined.first_batch == first.first_batch != second.first_batch
    assert joined.last_batch == second.last_batch != first.last_batch
    assert isinstance(joined.last_batch, BatchIdentity)
    assert joined.last_batch.base_offset == 3
