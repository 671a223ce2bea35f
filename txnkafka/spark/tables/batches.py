"""``table=batches``: one row a record batch, from its header; nothing is decoded.

Columns go from the header index to Arrow without an object per batch, a window of the log at a time. The
outcome of a batch's transaction follows from the markers behind it, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka._core.read_committed import HiddenRange, HiddenRanges, TransactionRange, contained
from txnkafka.logdir.read import unit_batches
from txnkafka.logdir.survey import survey
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.record.arrow import finer_timestamps
from txnkafka.record.compression import CompressionType
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import report
from txnkafka.spark.read import damage_fails_the_job, log_damage, pieces
from txnkafka.spark.selection import partition_range
from txnkafka.spark.tables.partition_tasks import Sources, each_partition, plan_partitions
from txnkafka.spark.tables.table import (
    BOOLEAN,
    INT,
    LONG,
    RANGES,
    SELECTION,
    SIZES,
    STRING,
    TIMESTAMP,
    Table,
    arrow_schema_of,
    table_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.logdir import PartitionView
    from txnkafka.record.chunk import SelectedBatches

__all__ = ["BATCHES"]

COLUMNS = table_columns(
    {
        "topic": STRING,
        "partition": INT,
        "segment": LONG,
        "position": LONG,
        "size": LONG,
        "baseOffset": LONG,
        "lastOffset": LONG,
        "recordCount": LONG,
        "baseTimestamp": TIMESTAMP,
        "maxTimestamp": TIMESTAMP,
        "deleteHorizon": TIMESTAMP,
        "timestampType": INT,
        "magic": INT,
        "codec": STRING,
        "leaderEpoch": INT,
        "producerId": LONG,
        "producerEpoch": INT,
        "baseSequence": INT,
        "isTransactional": BOOLEAN,
        "isControl": BOOLEAN,
        "coordinatorEpoch": INT,
        "outcome": STRING,
        "visible": BOOLEAN,
    },
    nullable=(
        "recordCount",
        "baseTimestamp",
        "maxTimestamp",
        "deleteHorizon",
        "magic",
        "codec",
        "leaderEpoch",
        "producerId",
        "producerEpoch",
        "baseSequence",
        "coordinatorEpoch",
        "outcome",
    ),
)

# bits of a batch's attributes
CODEC, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
OUTCOMES = ("aborted", "committed", "open", "undecided")  # the first two as control types number them
CODECS = tuple(codec.label for codec in CompressionType)
UNKNOWN_MAGIC = 127  # the scan's number for a magic byte that is not 0, 1 or 2
WHOLE_SEGMENT = 1 << 62  # as unit of a plan


class _Log(NamedTuple):
    """What the batches of a segment have in common; ``ended`` are the transactions of each outcome."""

    topic_partition: TopicPartition
    base_offset: int
    ended: Sequence[HiddenRanges]


class _Window:
    """The listed batches of one window: header fields as numpy arrays."""

    def __init__(self, log: _Log, batches: SelectedBatches, start_offset: int, end_offset: int) -> None:
        import numpy as np

        self.log = log
        self._batches = batches
        index = batches.index
        last = np.asarray(index.last_offset)
        self.listed = (last >= start_offset) & (np.asarray(index.base_offset) < end_offset)
        self.attributes = self.field("attributes")
        self.selected = np.frombuffer(batches.selection, np.uint8)[self.listed] != 0

    def __len__(self) -> int:
        return len(self.attributes)

    def field(self, name: str) -> Any:
        """A column of the header index."""
        import numpy as np

        return np.asarray(getattr(self._batches.index, name))[self.listed]

    def outcomes(self) -> Any:
        """Numbers of OUTCOMES; -1 where a batch is in no transaction."""
        import numpy as np

        found = np.where(self.attributes & CONTROL != 0, self.field("control_type"), -1)
        found[found > 1] = -1
        for number, ranges in enumerate(self.log.ended):
            inside = np.frombuffer(contained(self._batches.index, ranges), np.uint8)[self.listed]
            found[inside != 0] = number
        return found


def _rows(tasks: Iterable[Sources], schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    with damage_fails_the_job():
        for sources in tasks:
            yield from each_partition(sources, partial(_partition, schema=schema, options=options))


def _partition(view: PartitionView, schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    committed = options.isolation_level is IsolationLevel.READ_COMMITTED
    _, first, last = partition_range(view, options)
    start, end = view.bounds(options.isolation_level, first, last)
    if start >= end:
        return
    found = survey(view.segments, start, end, WHOLE_SEGMENT, with_txn_index=committed)
    report([*view.tail_findings, *found.findings], view.topic_partition)
    view.close()  # the indexes of all segments; from here on one window after the other is looked at
    ended = _ended(found.transactions)
    by_path = {segment.path: segment for segment in view.segments}
    on_corrupt = None if options.fail_on_data_loss else log_damage
    for unit in found.units(view.topic_partition, start, end, read_committed=committed):
        segment = by_path[unit.path]
        log = _Log(view.topic_partition, segment.base_offset, ended)
        for batches in unit_batches(segment, unit, on_corrupt):
            window = _Window(log, batches, start, end)
            if len(window):
                yield from pieces(_to_arrow(window, schema))
        segment.close()


def _ended(transactions: Sequence[TransactionRange]) -> list[HiddenRanges]:
    return [
        HiddenRanges(
            HiddenRange(each.producer_id, each.first_offset, each.last_offset)
            for each in transactions
            if each.outcome == outcome
        )
        for outcome in OUTCOMES
    ]


def _to_arrow(window: _Window, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    arrays = [_COLUMNS[field.name](window, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _same(value_of: Callable[[_Log], object]) -> Callable[[_Window, Any], Any]:
    """One value in all rows."""

    def column(window: _Window, kind: Any) -> Any:
        import pyarrow as pa

        return pa.repeat(pa.scalar(value_of(window.log), kind), len(window))

    return column


def _field(name: str, *, unknown: int | None = None) -> Callable[[_Window, Any], Any]:
    """A header field; null where it has the value that means "none"."""

    def column(window: _Window, kind: Any) -> Any:
        import pyarrow as pa

        values = window.field(name)
        return pa.array(values, mask=None if unknown is None else values == unknown).cast(kind)

    return column


def _timestamps(name: str, horizon: bool | None = None) -> Callable[[_Window, Any], Any]:
    """A timestamp; null where there is none. ``horizon``: only of batches that have a delete horizon, or
    that have none."""

    def column(window: _Window, kind: Any) -> Any:
        import pyarrow as pa

        values = window.field(name)
        null = values == -1
        if horizon is not None:
            null |= (window.attributes & DELETE_HORIZON != 0) != horizon
        return pa.array(finer_timestamps(values, "us"), mask=null).cast(kind)

    return column


def _has(bit: int) -> Callable[[_Window, Any], Any]:
    def column(window: _Window, kind: Any) -> Any:
        import pyarrow as pa

        return pa.array(window.attributes & bit != 0, kind)

    return column


def _words(words: Sequence[str], numbers_of: Callable[[_Window], Any]) -> Callable[[_Window, Any], Any]:
    """Words by their numbers; null for a number that has none."""

    def column(window: _Window, kind: Any) -> Any:
        import pyarrow as pa

        numbers = numbers_of(window)
        indices = pa.array(numbers, mask=(numbers < 0) | (numbers >= len(words)))
        return pa.DictionaryArray.from_arrays(indices, pa.array(words, kind)).dictionary_decode()

    return column


def _timestamp_types(window: _Window, kind: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    types = window.attributes & LOG_APPEND_TIME != 0
    return pa.array(np.where(window.field("magic") == 0, -1, types), kind)


def _visible(window: _Window, kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(window.selected & (window.attributes & CONTROL == 0), kind)


_COLUMNS: dict[str, Callable[[_Window, Any], Any]] = {
    "topic": _same(lambda log: log.topic_partition.topic),
    "partition": _same(lambda log: log.topic_partition.partition),
    "segment": _same(lambda log: log.base_offset),
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
    "codec": _words(CODECS, lambda window: window.attributes & CODEC),
    "isTransactional": _has(TRANSACTIONAL),
    "isControl": _has(CONTROL),
    "producerId": _field("producer_id", unknown=-1),
    "producerEpoch": _field("producer_epoch", unknown=-1),
    "baseSequence": _field("base_sequence", unknown=-1),
    "leaderEpoch": _field("partition_leader_epoch", unknown=-1),
    "coordinatorEpoch": _field("coordinator_epoch", unknown=-1),
    "outcome": _words(OUTCOMES, _Window.outcomes),
    "visible": _visible,
}

BATCHES: Table[Sources] = Table(
    columns=COLUMNS,
    keywords=SELECTION | RANGES | SIZES | {"isolation_level", "fail_on_data_loss"},
    plan=plan_partitions,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)
