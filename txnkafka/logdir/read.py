"""Reading one unit of a plan: bytes to columns. The same code runs in the caller's thread and in a Spark
executor."""

from __future__ import annotations

from collections.abc import Iterator

from txnkafka._core.columns import RecordColumns
from txnkafka._core.read_committed import select
from txnkafka._core.scan import BatchIndex
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.plan import DamagedBatch, ReadUnit
from txnkafka.logdir.segment import Segment
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt, SelectedBatches

__all__ = ["read_unit"]


def read_unit(
    segment: Segment, unit: ReadUnit, decoder: ChunkDecoder, on_corrupt: OnCorrupt | None = None
) -> Iterator[RecordColumns]:
    """The records of a unit, chunk by chunk, in columns that the next chunk uses again unless somebody
    still looks at them.

    Raises CorruptRecordError in front of a damaged batch, after everything before it was yielded; with
    ``on_corrupt`` the error is handed over and the batch left out.
    """
    handler = None if on_corrupt is None else lambda error: on_corrupt(_located(error, unit))
    try:
        yield from _read(segment, unit, decoder, handler)
    except CorruptRecordError as error:
        raise _located(error, unit) from error.__cause__


def _located(error: CorruptRecordError, unit: ReadUnit) -> CorruptRecordError:
    error.locate(file=unit.path, topic=unit.topic, partition=unit.partition)
    return error


def _read(
    segment: Segment, unit: ReadUnit, decoder: ChunkDecoder, on_corrupt: OnCorrupt | None
) -> Iterator[RecordColumns]:
    position, next_offset = unit.start_position, unit.start_offset
    for damaged in (*unit.damage, None):
        end = unit.end_position if damaged is None else damaged.position
        if position < end:
            for begin, data, index in segment.windows(position, end):
                _check_whole(index, end, data, begin)
                yield from _window(begin, data, index, next_offset, unit, decoder, on_corrupt)
                next_offset = max(
                    [next_offset, *([index.last_offset[len(index) - 1] + 1] if len(index) else [])]
                )
        if damaged is not None:
            _report(damaged, on_corrupt)
            position = damaged.position + damaged.size


def _window(
    position: int,
    data: memoryview,
    index: BatchIndex,
    next_offset: int,
    unit: ReadUnit,
    decoder: ChunkDecoder,
    on_corrupt: OnCorrupt | None,
) -> Iterator[RecordColumns]:
    def read(at: int, length: int) -> memoryview:
        return data[at - position : at - position + length]

    selection = select(index, unit.hidden, start_offset=next_offset, end_offset=unit.end_offset)
    return decoder.chunks(SelectedBatches(read, index, selection, next_offset, unit.end_offset), on_corrupt)


def _check_whole(index: BatchIndex, end: int, data: memoryview, begin: int) -> None:
    """The plan's boundaries lie between whole batches; if they do not any more, the file was changed under
    the plan."""
    at_end = begin + len(data) >= end
    if index.stop == "garbage" or (at_end and index.end_position < end):
        raise CorruptRecordError(
            f"the file is not what it was when the read was planned: {index.stop_reason or 'it is shorter'}",
            position=index.end_position,
        )


def _report(damaged: DamagedBatch, on_corrupt: OnCorrupt | None) -> None:
    error = CorruptRecordError(damaged.reason, position=damaged.position, offset=damaged.offset)
    if on_corrupt is None:
        raise error
    on_corrupt(error)
