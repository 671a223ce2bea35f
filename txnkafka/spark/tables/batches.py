"""``table=batches`` has one row per record batch, from its header; nothing is decoded.

The log is converted to Arrow a window at a time (``batch_columns.py``). The outcome of a batch's transaction
follows from later markers, so headers are scanned twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from txnkafka._core.read_committed import HiddenRange, HiddenRanges, TransactionRange
from txnkafka.logdir.read import unit_batches
from txnkafka.logdir.requested import offsets_of
from txnkafka.logdir.survey import survey
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import report
from txnkafka.spark.read import damage_fails_the_job, damage_handler, pieces
from txnkafka.spark.selection import partition_request
from txnkafka.spark.tables.batch_columns import OUTCOMES, BatchWindow, SegmentOutcomes, to_arrow
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

WHOLE_SEGMENT = 1 << 62  # as size of a unit


def _rows(tasks: Iterable[Sources], schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    with damage_fails_the_job():
        for sources in tasks:
            yield from each_partition(sources, partial(_partition, schema=schema, options=options))


def _partition(view: PartitionView, schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    committed = options.request.read_committed
    start, end = offsets_of(view, partition_request(view, options))
    if start >= end:
        return
    found = survey(view.segments, start, end, WHOLE_SEGMENT, with_txn_index=committed)
    report([*view.findings, *found.findings])
    view.close()  # release the indexes of all segments; from here on windows are read one by one
    ended = _ended(found.transactions)
    by_path = {segment.path: segment for segment in view.segments}
    on_corrupt = damage_handler(options)
    for unit in found.units(view.topic_partition, start, end, read_committed=committed):
        segment = by_path[unit.path]
        outcomes = SegmentOutcomes(view.topic_partition, segment.base_offset, ended)
        for batches in unit_batches(segment, unit, on_corrupt):
            window = BatchWindow(outcomes, batches, start, end)
            if len(window):
                yield from pieces(to_arrow(window, schema))
        segment.close()


def _ended(transactions: Sequence[TransactionRange]) -> list[HiddenRanges]:
    return [
        HiddenRanges(
            HiddenRange(transaction.producer_id, transaction.first_offset, transaction.last_offset)
            for transaction in transactions
            if transaction.outcome == outcome
        )
        for outcome in OUTCOMES
    ]


BATCHES: Table[Sources] = Table(
    columns=COLUMNS,
    keywords=SELECTION | RANGES | SIZES | {"isolation_level", "fail_on_data_loss"},
    plan=plan_partitions,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)
