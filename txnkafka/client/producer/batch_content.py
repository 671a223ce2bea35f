"""The records of a batch: tuples that were sent one by one, a range of columns, or a finished batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from txnkafka._core.record_list import RecordList
from txnkafka.errors import InvalidRecordError
from txnkafka.record.batch_header import (
    ATTRIBUTE_CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_2,
    header_fields,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from txnkafka.record.builder import InputColumns, RecordBatchBuilder


class Content(Protocol):
    """Records to encode. ``size`` is their size with the header, exact before compression."""

    @property
    def count(self) -> int:
        """The number of records."""

    @property
    def size(self) -> int:
        """The bytes of the batch."""

    def encode(self, builder: RecordBatchBuilder) -> bytearray:
        """Return the bytes of the batch, without a producer."""

    def split(self, limit: int) -> Sequence[Content]:
        """Return the same records in smaller batches, of about ``limit`` bytes; one if it is not possible."""


class Records:
    """The records of a RecordList."""

    __slots__ = ("list",)

    def __init__(self, records: RecordList) -> None:
        self.list = records

    @property
    def count(self) -> int:
        return len(self.list)

    @property
    def size(self) -> int:
        return self.list.size

    def encode(self, builder: RecordBatchBuilder) -> bytearray:
        records: Any = self.list.records
        return builder.build(records)

    def split(self, limit: int) -> list[Records]:
        parts: list[Records] = []
        part: RecordList | None = None
        for record in self.list.records:
            if part is None or part.add(*record) is None:  # type: ignore[arg-type]
                part = RecordList(None, limit)
                part.add(*record)  # type: ignore[arg-type]
                parts.append(Records(part))
        return parts


class ColumnRange:
    """Records ``start`` to ``stop`` of columns; ``size`` is an upper bound."""

    __slots__ = ("columns", "size", "start", "stop")

    def __init__(self, columns: InputColumns, start: int, stop: int, size: int) -> None:
        self.columns, self.start, self.stop, self.size = columns, start, stop, size

    @property
    def count(self) -> int:
        return self.stop - self.start

    def encode(self, builder: RecordBatchBuilder) -> bytearray:
        return builder.build(self.columns, start=self.start, stop=self.stop)

    def split(self, limit: int) -> list[ColumnRange]:
        parts = max(2, -(-self.size // max(1, limit)))
        step = max(1, self.count // parts)
        starts = range(self.start, self.stop, step)
        return [
            ColumnRange(self.columns, start, min(start + step, self.stop), self.size // len(starts) + 1)
            for start in starts
        ]


class FinishedBatch:
    """A copy of the bytes of one batch of magic 2, whose records are not read. Raises InvalidRecordError
    for other bytes."""

    __slots__ = ("batch", "count")

    def __init__(self, batch: Buffer) -> None:
        self.batch = bytearray(batch)
        size = len(self.batch)
        header = header_fields(self.batch) if size >= HEADER_SIZE else None
        if header is None or header.magic != MAGIC_2 or header.batch_length + LOG_OVERHEAD != size:
            raise InvalidRecordError(f"{size} bytes are not one record batch of magic 2")
        if header.attributes & ATTRIBUTE_CONTROL:
            raise InvalidRecordError("only a coordinator writes control batches")
        self.count = header.records_count

    @property
    def size(self) -> int:
        return len(self.batch)

    def encode(self, builder: RecordBatchBuilder) -> bytearray:
        return self.batch

    def split(self, limit: int) -> list[FinishedBatch]:
        return [self]
