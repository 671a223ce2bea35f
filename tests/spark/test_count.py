"""``count``: for every golden directory the number of records of the Java consumer, in both isolation
levels."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.golden.cases import ISOLATION_LEVELS, case
from tests.golden.damage import DAMAGED, TABLE, Row
from tests.golden.directories import INTACT
from tests.spark.answers import TablePart, planned, rows_of
from txnkafka import TopicPartition
from txnkafka.spark import count

# A CRC is wrong, which no header shows: the count includes the records of that batch.
WRONG_CRC = {"crash_flip_old_payload", "clean_flip_last_payload"}


def expected(row: Row, level: str) -> int:
    answer = row.answer
    if row.name in WRONG_CRC:
        return len(case(answer.like).expected_records(DAMAGED, level))
    return len(answer.records_around(level))


def part(name: object, path: str, partition: TopicPartition, level: str) -> list[TablePart]:
    reading: dict[str, Any] = {"assign": {partition.topic: [partition.partition]}, "isolation_level": level}
    return planned((name, level), "count", path, fail_on_data_loss=False, **reading)


@pytest.mark.slow
def test_every_directory(spark: SparkSession) -> None:
    parts, wanted = [], {}
    for level in ISOLATION_LEVELS:
        for directory in INTACT:
            name = str(directory)
            parts += part(name, directory.path, directory.partition, level)
            wanted[name, level] = len(directory.case.expected_records(directory.partition, level))
        for row in TABLE:
            parts += part(str(row), row.path, DAMAGED, level)
            wanted[str(row), level] = expected(row, level)
    found = spark.sparkContext.parallelize(parts, 8).mapPartitions(rows_of).collect()
    assert {name: number for name, _, number in found} == wanted
    assert sum(wanted.values()) > 30_000


def test_options_bound_what_is_counted(spark: SparkSession) -> None:
    found = case("interleaved")
    path, level = str(found.logs), "read_uncommitted"
    records = [
        each["offset"] for each in found.expected_records(TopicPartition("orders", 0), level)
    ]  # fmt: skip
    chosen: dict[str, Any] = {"assign": {"orders": [0]}, "isolation_level": level}
    assert count(spark, path, **chosen) == len(records)
    bounds: dict[str, Any] = {"starting_offsets": {"orders": {0: 2}}, "ending_offsets": {"orders": {0: 6}}}
    assert count(spark, path, **chosen, **bounds) == len(set(range(2, 6)).intersection(records))
    both = count(spark, path, topic="orders")
    assert both == sum(
        len(found.expected_records(TopicPartition("orders", number), "read_committed")) for number in (0, 1)
    )


def test_damage_that_headers_show_fails_the_job(spark: SparkSession) -> None:
    path = str(case("crash_bad_magic").logs)
    with pytest.raises(PySparkException, match="failOnDataLoss=false leaves the batch out"):
        count(spark, path, isolation_level="read_uncommitted")
    assert count(spark, path, isolation_level="read_uncommitted", fail_on_data_loss=False) == 70
