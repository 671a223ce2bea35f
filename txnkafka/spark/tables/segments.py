"""``table=segments`` has one row per segment of a log, with its files and figures from its headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import open_log_dir, report
from txnkafka.spark.tables.partition_tasks import Sources, chosen_or_all, each_partition, source_tasks
from txnkafka.spark.tables.table import (
    BOOLEAN,
    INT,
    LONG,
    SELECTION,
    SIZES,
    STRING,
    TIMESTAMP,
    Table,
    arrow_schema_of,
    batches_of_rows,
    microseconds,
    table_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka._core.scan import BatchIndex
    from txnkafka.logdir import PartitionView, SegmentReader

COLUMNS = table_columns(
    {
        "topic": STRING,
        "partition": INT,
        "topicId": STRING,
        "baseOffset": LONG,
        "lastOffset": LONG,
        "active": BOOLEAN,
        "path": STRING,
        "size": LONG,
        "indexSize": LONG,
        "timeindexSize": LONG,
        "txnindexSize": LONG,
        "snapshotSize": LONG,
        "batches": LONG,
        "controlBatches": LONG,
        "transactionalBatches": LONG,
        "records": LONG,
        "maxTimestamp": TIMESTAMP,
    },
    nullable=(
        "topicId",
        "lastOffset",
        "indexSize",
        "timeindexSize",
        "txnindexSize",
        "snapshotSize",
        "records",
        "maxTimestamp",
    ),
)
BESIDE = ("index", "timeindex", "txnindex", "snapshot")


def _plan(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[Sources]:
    log_dir = open_log_dir(paths, options)
    return source_tasks(log_dir, chosen_or_all(log_dir, options), options, parallelism)


def _rows(tasks: Iterable[Sources], schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    for sources in tasks:
        yield from batches_of_rows(each_partition(sources, _partition), COLUMNS, schema)


def _partition(view: PartitionView) -> Iterator[tuple[Any, ...]]:
    files = view.source.file_system
    sizes = {files.join(view.path, entry.name): entry.size for entry in files.list(view.path)}
    report(view.findings)
    for segment in view.segments:
        active = segment is view.segments[-1]
        yield view.topic, view.partition, view.topic_id, *_row(segment, sizes, active=active)
        segment.close()


def _row(segment: SegmentReader, sizes: dict[str, int], *, active: bool) -> tuple[Any, ...]:
    batches = [_counts(index) for index in segment.indexes()]
    latest = [max(index.max_timestamp) for index in segment.indexes() if len(index)]
    counts = [sum(column) for column in zip(*(batch[:3] for batch in batches), strict=True)]
    known = [batch[3] for batch in batches]
    return (
        segment.base_offset,
        segment.end_offset() - 1 if counts[0] else None,
        active,
        segment.path,
        sizes.get(segment.path, segment.size),
        *(sizes.get(segment.files.get(kind, "")) for kind in BESIDE),
        *counts,
        None if None in known else sum(timestamp for timestamp in known if timestamp is not None),
        microseconds(max(latest, default=-1)),
    )


def _counts(index: BatchIndex) -> tuple[int, int, int, int | None]:
    """Count batches, control batches, transactional batches with data, and records of all data batches (None
    where a header does not have their number)."""
    import numpy as np

    control = np.asarray(index.attributes) & ATTRIBUTE_CONTROL != 0
    transactional = (np.asarray(index.attributes) & ATTRIBUTE_TRANSACTIONAL != 0) & ~control
    records = np.asarray(index.record_count)[~control]
    known = int(records.sum(dtype=np.int64)) if (records >= 0).all() else None
    return len(index), int(control.sum()), int(transactional.sum()), known


SEGMENTS: Table[Sources] = Table(
    columns=COLUMNS,
    keywords=SELECTION | SIZES,
    plan=_plan,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)
