"""Reads one unit of a plan: bytes to columns. The same code runs in the caller's thread and in Spark
executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from txnkafka._core.columns import RecordColumns
from txnkafka._core.read_committed import HiddenRanges, select
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.env import FileSystem
from txnkafka.errors import CorruptRecordError, FileChangedError
from txnkafka.logdir.plan import BatchIdentity, DamagedBatch, ReadUnit
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt, SelectedBatches
from txnkafka.storage.formats.segment_reader import MAX_OPEN_SEGMENTS, LogFileReader, SegmentReader


def open_unit(file_system: FileSystem, unit: ReadUnit, *, mapped: bool = False) -> LogFileReader:
    """Open the file of ``unit`` with a reader limited to the unit's end. ``mapped``: the file may be mapped
    into memory."""
    return LogFileReader(file_system, unit.path, unit.end_position, mapped=mapped)


def opened(
    segments: Iterable[SegmentReader], units: Iterable[ReadUnit]
) -> Iterator[tuple[SegmentReader, ReadUnit]]:
    """Yield each unit with its segment; if there are many, close the segment afterwards."""
    by_path = {segment.path: segment for segment in segments}
    for unit in units:
        yield by_path[unit.path], unit
        if len(by_path) > MAX_OPEN_SEGMENTS:
            by_path[unit.path].close()


def read_unit(
    segment: LogFileReader, unit: ReadUnit, decoder: ChunkDecoder, on_corrupt: OnCorrupt | None = None
) -> Iterator[RecordColumns]:
    """Yield the records of a unit as columns, chunk by chunk. The next chunk reuses the columns' memory
    unless the caller keeps a view of it.

    Raises CorruptRecordError at a damaged batch, after yielding everything before it; with ``on_corrupt``,
    passes the error to it and leaves the batch out."""
    handler = locating(unit, on_corrupt)
    try:
        for batches in unit_batches(segment, unit, on_corrupt):
            yield from decoder.chunks(batches, handler)
    except CorruptRecordError as error:
        _locate(error, unit)
        raise


def unit_batches(
    segment: LogFileReader, unit: ReadUnit, on_corrupt: OnCorrupt | None = None
) -> Iterator[SelectedBatches]:
    """Yield the batches of a unit, a window at a time, with its reader's selection; only bytes and headers.

    A window is valid until the next one is requested. Raises CorruptRecordError at damage in the plan; with
    ``on_corrupt``, passes the error to it and leaves the batch out."""
    try:
        yield from _Walk(segment, unit, locating(unit, on_corrupt)).windows()
    except CorruptRecordError as error:
        _locate(error, unit)
        raise


def locating(unit: ReadUnit, on_corrupt: OnCorrupt | None) -> OnCorrupt | None:
    """Wrap ``on_corrupt`` for the batches of a unit, to add the file and position to its errors."""
    if on_corrupt is None:
        return None

    def hand_over(error: CorruptRecordError) -> None:
        _locate(error, unit)
        on_corrupt(error)

    return hand_over


def _locate(error: CorruptRecordError, unit: ReadUnit) -> None:
    error.locate(file=unit.path, topic=unit.topic, partition=unit.partition)


def _changed(position: int, reason: str) -> FileChangedError:
    reason = reason or "it has become shorter"
    return FileChangedError(
        f"the file is not what it was when the read was planned: {reason}", position=position
    )


def _check_same(index: BatchIndex, i: int, planned: BatchIdentity | None) -> None:
    """Raise FileChangedError if batch number ``i`` is not the planned batch."""
    if planned is not None and planned != (index.base_offset[i], index.crc[i]):
        raise _changed(index.position[i], "it has other batches")


class _Walk:
    def __init__(self, segment: LogFileReader, unit: ReadUnit, on_corrupt: OnCorrupt | None) -> None:
        self._segment = segment
        self._unit = unit
        self._next_offset = unit.start_offset
        self._hidden = HiddenRanges(unit.hidden)
        self._on_corrupt = on_corrupt

    def windows(self) -> Iterator[SelectedBatches]:
        """Yield the windows between the damage in the plan, and report that damage."""
        position = self._unit.start_position
        for damaged in self._unit.damage:
            yield from self._stretch(position, damaged.position)
            if damaged.wanted:
                self._damaged(damaged)
            position = damaged.position + damaged.size
        yield from self._stretch(position, self._unit.end_position)

    def _stretch(self, start: int, end: int) -> Iterator[SelectedBatches]:
        if start >= end:
            return
        whole, last = start, None
        for position, data, index in self._segment.windows(start, end):
            if len(index) and position == self._unit.start_position:
                _check_same(index, 0, self._unit.first_batch)
            yield self._selected(position, data, index)
            whole, reason = index.end_position, index.stop_reason
            if len(index):
                last = index
                self._next_offset = max(self._next_offset, index.last_offset[len(index) - 1] + 1)
        if whole < end:
            # Planned boundaries are between whole batches: otherwise the file has changed.
            raise _changed(whole, reason)
        if last is not None and end == self._unit.end_position:
            _check_same(last, len(last) - 1, self._unit.last_batch)

    def _selected(self, position: int, data: memoryview, index: BatchIndex) -> SelectedBatches:
        bytes_of_window = self._segment.reader(position, data)

        def read(at: int, length: int) -> memoryview:
            found = bytes_of_window(at, length)
            if len(found) < length:  # the file has changed since the window was read
                there = scan(found, position=at)
                if not len(there):
                    raise _changed(there.end_position, there.stop_reason)
            return found

        end_offset = self._unit.end_offset
        selection = select(index, self._hidden, start_offset=self._next_offset, end_offset=end_offset)
        return SelectedBatches(read, index, selection, self._next_offset, end_offset, self._segment.guard)

    def _damaged(self, damaged: DamagedBatch) -> None:
        if self._on_corrupt is None:
            raise damaged.error()
        self._on_corrupt(damaged.error())
