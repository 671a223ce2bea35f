"""Builds the columns of ``table=batches`` from the header index of a window of the log, without an object per
batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka._core.read_committed import HiddenRanges, contained
from txnkafka.model import TopicPartition
from txnkafka.record.arrow import finer_timestamps
from txnkafka.record.batch_header import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_COMMIT,
    MAGIC_0,
    UNKNOWN_MAGIC,
)
from txnkafka.record.compression import CompressionType
from txnkafka.shown import plain_name

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.record.chunk import SelectedBatches

OUTCOMES = ("aborted", "committed", "open", "undecided")  # the first two are numbered like control types
CODECS = tuple(codec.label for codec in CompressionType)

Column = Callable[["BatchWindow", Any], Any]  # and the Arrow type


class SegmentOutcomes(NamedTuple):
    """The facts that all batches of a segment share; ``transactions`` has the ranges for each of OUTCOMES."""

    topic_partition: TopicPartition
    base_offset: int
    transactions: Sequence[HiddenRanges]


class BatchWindow:
    """The listed batches of one window: header fields as numpy arrays."""

    def __init__(
        self, segment: SegmentOutcomes, batches: SelectedBatches, start_offset: int, end_offset: int
    ) -> None:
        import numpy as np

        self.segment = segment
        self._batches = batches
        index = batches.index
        last = np.asarray(index.last_offset)
        self.listed = (last >= start_offset) & (np.asarray(index.base_offset) < end_offset)
        self.attributes = self.field("attributes")
        self.selected = np.frombuffer(batches.selection, np.uint8)[self.listed] != 0

    def __len__(self) -> int:
        return len(self.attributes)

    def field(self, name: str) -> Any:
        """Return a column of the header index."""
        import numpy as np

        return np.asarray(getattr(self._batches.index, name))[self.listed]

    def outcomes(self) -> Any:
        """Return the number in OUTCOMES of each batch; -1 for batches without a transaction."""
        import numpy as np

        found = np.where(self.attributes & ATTRIBUTE_CONTROL != 0, self.field("control_type"), -1)
        found[found > CONTROL_COMMIT] = -1
        for number, ranges in enumerate(self.segment.transactions):
            inside = np.frombuffer(contained(self._batches.index, ranges), np.uint8)[self.listed]
            found[inside != 0] = number
        return found


def to_arrow(window: BatchWindow, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of ``schema``, in its order."""
    import pyarrow as pa

    arrays = [_COLUMNS[field.name](window, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _same(value_of: Callable[[SegmentOutcomes], object]) -> Column:
    """Build a column with one value in all rows."""

    def column(window: BatchWindow, kind: Any) -> Any:
        import pyarrow as pa

        return pa.repeat(pa.scalar(value_of(window.segment), kind), len(window))

    return column


def _field(name: str, *, unknown: int | None = None) -> Column:
    """Build the column of a header field; null where it has the value for none."""

    def column(window: BatchWindow, kind: Any) -> Any:
        import pyarrow as pa

        values = window.field(name)
        return pa.array(values, mask=None if unknown is None else values == unknown).cast(kind)

    return column


def _timestamps(name: str, horizon: bool | None = None) -> Column:
    """Build a timestamp column; null for a missing one. ``horizon``: only for batches with a delete
    horizon, or only for batches without one."""

    def column(window: BatchWindow, kind: Any) -> Any:
        import pyarrow as pa

        values = window.field(name)
        null = values == -1
        if horizon is not None:
            null |= (window.attributes & ATTRIBUTE_DELETE_HORIZON != 0) != horizon
        return pa.array(finer_timestamps(values, "us"), mask=null).cast(kind)

    return column


def _has(bit: int) -> Column:
    def column(window: BatchWindow, kind: Any) -> Any:
        import pyarrow as pa

        return pa.array(window.attributes & bit != 0, kind)

    return column


def _words(words: Sequence[str], numbers_of: Callable[[BatchWindow], Any]) -> Column:
    """Build a column of words from their numbers; null for an unknown number."""

    def column(window: BatchWindow, kind: Any) -> Any:
        import pyarrow as pa

        numbers = numbers_of(window)
        indices = pa.array(numbers, mask=(numbers < 0) | (numbers >= len(words)))
        return pa.DictionaryArray.from_arrays(indices, pa.array(words, kind)).dictionary_decode()

    return column


def _timestamp_types(window: BatchWindow, kind: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    types = window.attributes & ATTRIBUTE_LOG_APPEND_TIME != 0
    return pa.array(np.where(window.field("magic") == MAGIC_0, -1, types), kind)


def _visible(window: BatchWindow, kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(window.selected & (window.attributes & ATTRIBUTE_CONTROL == 0), kind)


_COLUMNS: dict[str, Column] = {
    "topic": _same(lambda segment: plain_name(segment.topic_partition.topic)),
    "partition": _same(lambda segment: segment.topic_partition.partition),
    "segment": _same(lambda segment: segment.base_offset),
    "position": _field("position"),
    "size": _field("size"),
    "baseOffset": _field("base_offset"),
    "lastOffset": _field("last_offset"),
    "recordCount": _field("record_count", unknown=-1),
    "baseTimestamp": _timestamps("base_timestamp", horizon=False),
    "maxTimestamp": _timestamps("max_timestamp"),
    "deleteHorizon": _timestamps("base_timestamp", horizon=True),
    "timestampType": _timestamp_types,
    "magic": _field("magic", unknown=UNKNOWN_MAGIC),
    "codec": _words(CODECS, lambda window: window.attributes & ATTRIBUTE_CODEC),
    "isTransactional": _has(ATTRIBUTE_TRANSACTIONAL),
    "isControl": _has(ATTRIBUTE_CONTROL),
    "producerId": _field("producer_id", unknown=-1),
    "producerEpoch": _field("producer_epoch", unknown=-1),
    "baseSequence": _field("base_sequence", unknown=-1),
    "leaderEpoch": _field("partition_leader_epoch", unknown=-1),
    "coordinatorEpoch": _field("coordinator_epoch", unknown=-1),
    "outcome": _words(OUTCOMES, BatchWindow.outcomes),
    "visible": _visible,
}
