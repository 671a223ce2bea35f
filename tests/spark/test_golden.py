"""All golden directories in one job per isolation level, record for record what the Java consumer got."""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.golden.cases import ISOLATION_LEVELS
from tests.golden.damage import DAMAGED, TABLE
from tests.golden.directories import INTACT
from txnkafka import TimestampType, TopicPartition
from txnkafka.spark import batches

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
RECORDS = {"read_committed": 13_123, "read_uncommitted": 23_214}
Json = Any


class Expected(NamedTuple):
    """One directory, the partitions to read of it, and the records of each."""

    name: str
    path: str
    records: dict[TopicPartition, list[Json]]
    damaged: bool


def expected(level: str) -> list[Expected]:
    found: dict[str, Expected] = {}
    for each in INTACT:
        name = f"{each.case.name}/{each.name}"
        row = found.setdefault(name, Expected(name, each.path, {}, damaged=False))
        row.records[each.partition] = each.case.expected_records(each.partition, level)
    for damage in TABLE:
        meets = damage.answer.meets_damage(level)
        records = damage.answer.records_around(level) if meets else damage.answer.records(level)
        found[str(damage)] = Expected(str(damage), damage.path, {DAMAGED: records}, damaged=meets)
    return list(found.values())


def base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode("ascii")


def rows(name: str, found: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, str, int, Json]]:
    """Runs in the worker: records as the lines of the expected files write them."""
    for batch in found:
        milliseconds = batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000
        for row, timestamp in zip(batch.to_pylist(), milliseconds.tolist(), strict=True):
            record = {
                "offset": row["offset"],
                "timestamp": timestamp,
                "timestamp_type": TimestampType(row["timestampType"]).label,
                "key": base64(row["key"]),
                "value": base64(row["value"]),
                "headers": [[each["key"], base64(each["value"])] for each in row["headers"] or ()],
            }
            yield name, row["topic"], row["partition"], record


@pytest.mark.parametrize("level", ISOLATION_LEVELS)
def test_every_directory(spark: SparkSession, level: str) -> None:
    wanted = expected(level)
    jobs = []
    for each in wanted:
        assign: dict[str, list[int]] = defaultdict(list)
        for topic, partition in each.records:
            assign[topic].append(partition)
        found = batches(
            spark,
            each.path,
            columns=COLUMNS,
            assign=assign,
            isolation_level=level,
            fail_on_data_loss=not each.damaged,
        )
        jobs.append(found.mapPartitions(partial(rows, each.name)))
    got: dict[tuple[str, TopicPartition], list[Json]] = defaultdict(list)
    for name, topic, partition, record in spark.sparkContext.union(jobs).collect():
        got[name, TopicPartition(topic, partition)].append(record)
    assert (len(wanted), sum(map(len, got.values()))) == (126, RECORDS[level])
    for each in wanted:
        for topic_partition, records in each.records.items():
            for record in records:
                del record["leader_epoch"]  # Spark's Kafka source has no such column
            assert got.pop((each.name, topic_partition), []) == records, (each.name, topic_partition)
    assert not got
