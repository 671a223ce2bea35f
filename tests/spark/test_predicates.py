"""Predicates and narrow columns through Spark: the same rows from every interface, and Spark's own filters
pushed down where the session allows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.models.builder import Batch, PlainRecord
from tests.spark.conftest import SPARK
from tests.unit.logdir.logs import write_log
from txnkafka.spark import batches, scan

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
COUNT = 40


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write orders-0 and refunds-1: offsets 0 to 39 in four segments, a second apart, some nulls and
    headers."""
    root = tmp_path_factory.mktemp("logs")
    for name in ("orders-0", "refunds-1"):
        write_log(root, name, {base: [_batch(base), _batch(base + 5)] for base in range(0, COUNT, 10)})
    return str(root)


def _batch(base: int) -> bytes:
    records = [
        PlainRecord(
            None if offset % 4 == 3 else b"user-%d" % (offset % 3),
            b"v" * (offset % 7),
            1000 * offset,
            [(b"trace", b"%d" % offset)] if offset % 2 else [],
        )
        for offset in range(base, base + 5)
    ]
    return Batch(records=records, base_offset=base).encode()


@pytest.fixture(params=["true", "false"])
def pushdown(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    spark.conf.set(PUSHDOWN, request.param)
    yield request.param == "true" and SPARK >= (4, 1)  # Spark 4.0 pushes no filters to Python sources
    spark.conf.unset(PUSHDOWN)


def frame(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("txnkafka").options(**options).load(path)


def places(found: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((row.topic, row.offset) for row in found.select("topic", "offset").collect())


WHERES = [
    ("offset >= 7 and offset < 23 and topic = 'orders'", lambda o, t: 7 <= o < 23 and t == "orders"),
    ("key like 'user-1%' or key is null", lambda o, t: o % 4 == 3 or o % 3 == 1),
    ("length(value) > 4 and timestamp >= '1970-01-01T00:00:30Z'", lambda o, t: o % 7 > 4 and o >= 30),
    ("header('trace') in ('11', '13') and partition = 1", lambda o, t: o in (11, 13) and t == "refunds"),
]


@pytest.mark.slow
def test_every_way_chooses_the_same_rows(spark: SparkSession, path: str) -> None:
    for where, holds in WHERES:
        expected = sorted((t, o) for t in ("orders", "refunds") for o in range(COUNT) if holds(o, t))
        assert expected
        assert places(frame(spark, path, where=where)) == expected
        assert places(scan(spark, path, where=where, columns=["offset", "topic"])) == expected
        found = batches(spark, path, where=where, columns=["topic", "offset"], min_partitions=5)
        rows = found.flatMap(lambda each: each.to_pylist()).collect()
        assert sorted((row["topic"], row["offset"]) for row in rows) == expected


def test_columns_narrow_the_schema(spark: SparkSession, path: str) -> None:
    assert frame(spark, path, columns="offset,key").columns == ["offset", "key"]
    assert scan(spark, path, columns=["headers", "offset"]).columns == ["headers", "offset"]
    whole = scan(spark, path)
    assert whole.schema == frame(spark, path).schema
    assert whole.exceptAll(frame(spark, path)).count() == 0
    assert whole.count() == 2 * COUNT
    with pytest.raises(PySparkException, match="unknown column ofset: did you mean offset"):
        frame(spark, path, columns="ofset").collect()


FILTERS = [
    ("offset > 36", True),
    ("offset >= 3 and offset <= 5 and topic = 'orders'", True),
    ("key is null and offset < 9", True),
    ("key in (X'757365722d31', X'00')", True),
    ("timestamp >= timestamp'1970-01-01 00:00:38Z'", True),
    # a batch ends with second 34: its unit must stay when that is the bound, and be dropped when the bound is
    # later
    ("timestamp >= timestamp'1970-01-01 00:00:34Z'", True),
    ("timestamp > timestamp'1970-01-01 00:00:34Z'", True),
    ("timestamp = timestamp'1970-01-01 00:00:34Z'", True),
    ("timestamp <= timestamp'1970-01-01 00:00:01Z' and key is not null", True),
    # between two milliseconds a predicate has no literal
    ("timestamp >= timestamp'1970-01-01 00:00:34.0005Z'", False),
    ("timestamp > timestamp'1970-01-01 00:00:33.999999Z'", False),
    ("timestamp < timestamp'1970-01-01 00:00:01.000001Z'", False),
    ("timestamp = timestamp'1970-01-01 00:00:34.000001Z'", False),
    ("startswith(topic, 'ref') and partition <> 0 and offset < 4", True),
    ("offset < 2 or offset > 37", False),
    ("length(value) = 6 and offset < 30", False),
]


def test_sparks_filters_give_the_same_rows_pushed_or_not(
    spark: SparkSession, path: str, pushdown: bool
) -> None:
    everything = frame(spark, path).collect()
    reference = spark.createDataFrame(everything, frame(spark, path).schema)
    for condition, can_be_pushed in FILTERS:
        found = frame(spark, path, maxBytesPerPartition="1").where(condition)
        assert places(found) == places(reference.where(condition)), condition
        plan = found._jdf.queryExecution().optimizedPlan().toString()
        # a Filter contains what Spark evaluates itself
        assert ("Filter" not in plan) == (pushdown and can_be_pushed), plan


@pytest.mark.parametrize(
    ("needless", "rows"), [("offset < 10", 10), ("timestamp >= timestamp'1970-01-01 00:00:15Z'", 10)]
)
def test_a_pushed_filter_drops_what_need_not_be_read(
    spark: SparkSession, tmp_path: Path, pushdown: bool, needless: str, rows: int
) -> None:
    # the first batch of the second segment is damaged: only reads that need it fail
    damaged = _batch(10)[:-1] + b"!"
    write_log(tmp_path, "t-0", {0: [_batch(0), _batch(5)], 10: [damaged, _batch(15)], 20: [_batch(20)]})
    one_batch_each = {"maxBytesPerPartition": "1"}
    found = frame(spark, str(tmp_path), **one_batch_each).where(needless)
    if pushdown:
        assert found.count() == rows
    else:
        with pytest.raises(PySparkException, match="CRC of the batch does not match"):
            found.count()
    where = needless.replace("timestamp'", "'")
    assert frame(spark, str(tmp_path), where=where, **one_batch_each).count() == rows
    with pytest.raises(PySparkException, match="CRC of the batch does not match"):
        frame(spark, str(tmp_path), where="timestamp >= 14000", **one_batch_each).count()
