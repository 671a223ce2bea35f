"""Queries of a test: started, run to their end, and asked for their rows by batch."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

__all__ = ["Rows", "flat", "run", "started"]

CONNECT = "Python worker failed to connect back"
ATTEMPTS = 5  # Spark waits only ten seconds for its worker, which a busy machine exceeds
Rows = dict[int, list[tuple[Any, ...]]]


def run(
    spark: SparkSession,
    path: str,
    checkpoint: Path,
    columns: str = "topic, partition, offset",
    **options: str,
) -> Rows:
    """Run a query up to the present end of the log; return the rows of each batch. Raises the error of the
    query."""
    rows: Rows = {}

    def take(frame: DataFrame, number: int) -> None:
        found = frame.selectExpr(*columns.split(", ")).collect()
        rows[number] = [tuple(row) for row in found]

    for attempt in range(ATTEMPTS):
        query = started(spark, path, checkpoint, take, **options)
        try:
            query.awaitTermination()
        except Exception as error:
            if CONNECT not in str(error) or attempt == ATTEMPTS - 1:
                raise
        else:
            break
    return rows


def started(
    spark: SparkSession, path: str | None, checkpoint: Path, take: Any, **options: str
) -> StreamingQuery:
    """Start a query that ends at the present end of the log."""
    stream = spark.readStream.format("txnkafka").option("startingOffsets", "earliest").options(**options)
    writer = stream.load(path).writeStream.foreachBatch(take).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def flat(rows: Rows) -> list[Any]:
    """The rows of all batches in their order."""
    return [*chain(*(rows[number] for number in sorted(rows)))]
