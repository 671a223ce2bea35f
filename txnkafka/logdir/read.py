"""Reading one unit of a plan: bytes to columns. The same code runs in the caller's thread and in a Spark
executor."""

from __future__ import annotations

from collections.abc import Iterator

from txnkafka._core.columns import RecordColumns
from txnkafka._core.read_committed import HiddenRanges, select
from txnkafka._core.scan import BatchIndex
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.plan import DamagedBatch, ReadUnit
from txnkafka.logdir.segment import Segment
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt, SelectedBatches

__all__ = ["read_unit"]


def read_unit(
    segment: Segment, unit: ReadUnit, decoder: ChunkDecoder, on_corrupt: OnCorrupt | None = None
) -> Iterator[RecordColumns]:
    """The records of a unit, chunk by chunk, in columns that the next chunk uses again unless somebody still
    looks at them.

    Raises CorruptRecordError in front of a damaged batch, after everything before it was yielded; with
    ``on_corrupt`` the error is handed over and the batch left out.
    """
    reading = _Reading(segment, unit, decoder, on_corrupt)
    try:
        yield from reading.chunks()
    except CorruptRecordError as error:
        reading.locate(error)
        raise


class _Reading:
    def __init__(
        self, segment: Segment, unit: ReadUnit, decoder: ChunkDecoder, on_corrupt: OnCorrupt | None
    ) -> None:
        self.segment = segment
        self.unit = unit
        self.decoder = decoder
        self.next_offset = unit.start_offset
        self._hidden = HiddenRanges(unit.hidden)
        self._report = on_corrupt
        self.on_corrupt = None if on_corrupt is None else self._hand_over

    def locate(self, error: CorruptRecordError) -> None:
        error.locate(file=self.unit.path, topic=self.unit.topic, partition=self.unit.partition)

    def _hand_over(self, error: CorruptRecordError) -> None:
        assert self._report is not None
        self.locate(error)
        self._report(error)

    def chunks(self) -> Iterator[RecordColumns]:
        """Stretches between damage that the plan knows of, then that damage."""
        position = self.unit.start_position
        for damaged in self.unit.damage:
            yield from self._stretch(position, damaged.position)
            if damaged.wanted:
                self._damaged(damaged)
            position = damaged.position + damaged.size
        yield from self._stretch(position, self.unit.end_position)

    def _stretch(self, start: int, end: int) -> Iterator[RecordColumns]:
        if start >= end:
            return
        whole = start
        for position, data, index in self.segment.windows(start, end):
            yield from self._window(position, data, index)
            whole, reason = index.end_position, index.stop_reason
            if len(index):
                self.next_offset = max(self.next_offset, index.last_offset[len(index) - 1] + 1)
        if whole < end:
            # The plan's boundaries lie between whole batches; if no more, the file was changed meanwhile.
            raise CorruptRecordError(
                f"the file is not what it was when the read was planned: {reason or 'it has become shorter'}",
                position=whole,
            )

    def _window(self, position: int, data: memoryview, index: BatchIndex) -> Iterator[RecordColumns]:
        def read(at: int, length: int) -> memoryview:
            return data[at - position : at - position + length]

        unit = self.unit
        selection = select(index, self._hidden, start_offset=self.next_offset, end_offset=unit.end_offset)
        batches = SelectedBatches(read, index, selection, self.next_offset, unit.end_offset)
        return self.decoder.chunks(batches, self.on_corrupt)

    def _damaged(self, damaged: DamagedBatch) -> None:
        error = CorruptRecordError(damaged.reason, position=damaged.position, offset=damaged.offset)
        if self.on_corrupt is None:
            raise error
        self.on_corrupt(error)
