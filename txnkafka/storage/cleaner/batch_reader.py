"""Reads the batches of segments to rewrite: checks them, and converts their records to magic 2.

Rewriting a batch gives it a correct CRC, so batches with a wrong CRC, or that begin below the end of the
previous batch, are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.columns import RecordColumns
from txnkafka._core.encode import encode_batch
from txnkafka._core.legacy import decode_legacy
from txnkafka._core.read_committed import WHOLE
from txnkafka._core.record_input import InputColumns
from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch_header import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTES,
    HEADER_SIZE,
    MAGIC_1,
    MAGIC_2,
)
from txnkafka.record.compression import Decompressor
from txnkafka.record.crc import first_invalid_crc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from txnkafka._core.scan import BatchHeader, BatchIndex
    from txnkafka.storage.log.log_segment import LogSegment

_BATCH_COST = 2 << 10  # per batch, in addition to its bytes
_COMPRESSED_COST = 16  # per byte of a compressed batch
_PARTS = ("offsets", "data", "validity")
_WRONG_CRC = "has a CRC that does not match its bytes"
_DISORDER = "begins below the end of the batch before it"
_COLUMNS = ("offsets", "timestamps", *(f"{kind}_{part}" for kind in ("key", "value") for part in _PARTS))


def cost_of(header: BatchHeader) -> int:
    """Return the cost of processing a batch, in units of one byte of a large uncompressed batch."""
    return _BATCH_COST + header.size * (_COMPRESSED_COST if header.attributes & ATTRIBUTE_CODEC else 1)


class Window:
    """Bytes of a segment from ``position`` on, and the batches in them, which begin at or above
    ``first_offset``; valid until the next window."""

    __slots__ = ("data", "first_offset", "index", "position", "segment")

    def __init__(
        self, segment: LogSegment, position: int, first_offset: int, data: memoryview, index: BatchIndex
    ) -> None:
        self.segment = segment
        self.position = position
        self.first_offset = first_offset
        self.data = data
        self.index = index

    def batch(self, number: int) -> memoryview:
        """Return the bytes of one batch."""
        begin = self.index.position[number] - self.position
        return self.data[begin : begin + self.index.size[number]]

    def least_offset(self, number: int) -> int:
        """Return the offset after the previous batch."""
        return self.index.last_offset[number - 1] + 1 if number else self.first_offset

    def locate(self, error: CorruptRecordError, number: int) -> None:
        """Add the place of the batch to an error."""
        error.locate(file=self.segment.path("log"))
        error.position, error.offset = self.index.position[number], self.index.base_offset[number]


class BatchReader:
    """Reads batches. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._decompressor = Decompressor()

    def windows(self, segment: LogSegment, position: int = 0) -> Iterator[Window]:
        """Yield all batches of a segment from the batch at ``position`` on. Raises CorruptRecordError at the
        first unsound batch, and OSError."""
        if not segment.size:
            return
        view = segment.view()
        next_offset, end = segment.base_offset if position == 0 else 0, position
        try:
            for start, data, index in view.windows(position, segment.size):
                bad = first_invalid_crc(data, index, position=start)
                in_order = index.disorder(next_offset)
                if min(bad, in_order) < len(index):
                    why = _WRONG_CRC if bad <= in_order else _DISORDER
                    raise self._corrupt(segment, index.position[min(bad, in_order)], why)
                if len(index):
                    first_offset, next_offset = next_offset, index.last_offset[-1] + 1
                    end = index.end_position
                    yield Window(segment, start, first_offset, data, index)
            if end != segment.size:
                raise self._corrupt(segment, end, "is incomplete")
        finally:
            view.close()

    def _corrupt(self, segment: LogSegment, position: int, text: str) -> CorruptRecordError:
        return CorruptRecordError(f"the batch here {text}", position=position, file=segment.path("log"))

    def records(self, window: Window, number: int) -> tuple[memoryview, memoryview]:
        """Return header and records of one batch in the form of magic 2; valid until the next call. Raises
        CorruptRecordError."""
        batch = window.batch(number)
        if window.index.magic[number] < MAGIC_2:
            batch = self._converted(window, number)
        codec = batch[ATTRIBUTES + 1] & ATTRIBUTE_CODEC
        if not codec:
            return batch[:HEADER_SIZE], batch[HEADER_SIZE:]
        self._decompressor.reset()
        try:
            begin, end = self._decompressor.append(codec, batch[HEADER_SIZE:])
        except CorruptRecordError as error:
            window.locate(error, number)
            raise
        return batch[:HEADER_SIZE], self._decompressor.buffer[begin:end]

    def _converted(self, window: Window, number: int) -> memoryview:
        """Convert a message set of magic 0 or 1 to one uncompressed batch of magic 2."""
        columns = RecordColumns()
        index = window.index
        selection = bytearray(len(index))
        selection[number] = WHOLE
        try:
            decode_legacy(
                window.data, index, selection, number, number + 1, columns, self._decompressor,
                position=window.position,
            )  # fmt: skip
        except CorruptRecordError as error:
            window.locate(error, number)
            raise
        found: dict[str, Any] = {name: getattr(columns, name) for name in _COLUMNS}
        offsets = memoryview(columns.offsets)
        append_time = index.attributes[number] & ATTRIBUTE_LOG_APPEND_TIME and index.magic[number] == MAGIC_1
        try:
            if offsets[-1] > index.last_offset[number]:
                raise ValueError(f"offset {offsets[-1]} is above the entry's own")
            if offsets[0] < window.least_offset(number):  # a consumer would skip the record
                raise ValueError(f"offset {offsets[0]} lies before the end of the entry before it")
            converted = encode_batch(
                InputColumns(**found),
                base_offset=offsets[0],
                log_append_time=index.max_timestamp[number] if append_time else None,
            )
        except ValueError as error:  # offsets that do not grow, timestamps outside magic 2's range
            damage = CorruptRecordError(f"the entry cannot be converted to magic 2: {error}")
            window.locate(damage, number)
            raise damage from error
        return memoryview(converted)
