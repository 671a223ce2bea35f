"""The Spark program that bench/spark.py drives: `python -m bench.spark_driver READER WORK LOG_DIR`.

READER is txnkafka or aiokafka (what a Python user can write with it in an afternoon: whole segments, no
transactions). WORK is `rows`: offset, key and value of all records to Spark SQL, into the noop sink; or
`aggregate`: number, sum of offsets and bytes of the records whose value contains a word, computed in the
Python workers. One line on stdin is one run, its answer is one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

WORD = "eu-west-2"
ARROW_ROWS = 16_384
SCHEMA = pa.schema([("offset", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])
SQL_SCHEMA = "offset long, key binary, value binary"
TOTALS = ("count(1)", "sum(offset)", "sum(length(value))")


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[1]").appName("txnkafka bench")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    # what docs/spark.md advises; both readers get it
    builder = builder.config("spark.python.unix.domain.socket.enabled", "true")
    builder = builder.config("spark.buffer.size", str(1 << 20))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def segments(log_dir: str) -> list[str]:
    return sorted(str(path) for path in Path(log_dir).glob("bench-*/*.log"))


def read_with_aiokafka(path: str) -> Iterator[Any]:
    from bench.peers import AiokafkaSide

    side = AiokafkaSide(Path(path))
    side.warm()
    for batch in side.batches():
        yield from batch


def arrow_of(path: str) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[int, bytes, bytes]] = []
    for record in read_with_aiokafka(path):
        rows.append((record.offset, record.key, record.value))
        if len(rows) == ARROW_ROWS:
            yield pa.RecordBatch.from_arrays(
                [list(column) for column in zip(*rows, strict=True)], schema=SCHEMA
            )
            rows = []
    if rows:
        yield pa.RecordBatch.from_arrays([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def rows_of_segments(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in batch.column(0).to_pylist():
            yield from arrow_of(path)


def rows(spark: SparkSession, reader: str, log_dir: str) -> DataFrame:
    if reader == "txnkafka":
        return spark.read.format("txnkafka").schema(SQL_SCHEMA).option("subscribe", "bench").load(log_dir)
    paths = spark.createDataFrame([(path,) for path in segments(log_dir)], "path string")
    return paths.repartition(len(segments(log_dir))).mapInArrow(rows_of_segments, SQL_SCHEMA)


def totals_of_segment(path: str) -> tuple[int, int, int]:
    word = WORD.encode()
    count = offsets = size = 0
    for record in read_with_aiokafka(path):
        if word in record.value:
            count += 1
            offsets += record.offset
            size += len(record.value)
    return count, offsets, size


def totals_of_batch(batch: pa.RecordBatch) -> tuple[int, int, int]:
    found = batch.filter(pc.match_substring(batch.column("value"), WORD))
    offsets, values = found.column("offset"), found.column("value")
    sums = (pc.sum(offsets).as_py(), pc.sum(pc.binary_length(values)).as_py())
    return found.num_rows, sums[0] or 0, sums[1] or 0


def added(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def aggregate(spark: SparkSession, reader: str, log_dir: str) -> tuple[int, int, int]:
    if reader == "txnkafka":
        from txnkafka.spark import batches

        return (
            batches(spark, log_dir, topic="bench", columns=["offset", "value"])
            .map(totals_of_batch)
            .reduce(added)
        )
    paths = spark.sparkContext.parallelize(segments(log_dir), len(segments(log_dir)))
    return paths.map(totals_of_segment).reduce(added)


def run_rows(spark: SparkSession, reader: str, log_dir: str) -> None:
    rows(spark, reader, log_dir).write.format("noop").mode("overwrite").save()


def total_rows(spark: SparkSession, reader: str, log_dir: str) -> tuple[int, ...]:
    return tuple(rows(spark, reader, log_dir).selectExpr(*TOTALS).first() or ())


# what is timed, and what gives the digest
WORK: dict[str, tuple[Callable[..., object], Callable[..., tuple[int, ...]]]] = {
    "rows": (run_rows, total_rows),
    "aggregate": (aggregate, aggregate),
}


def main() -> None:
    reader, work, log_dir = sys.argv[1:]
    spark = session()
    run, digest = WORK[work]
    for line in sys.stdin:
        answer = digest(spark, reader, log_dir) if line.strip() == "digest" else run(spark, reader, log_dir)
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
