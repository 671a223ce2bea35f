"""All golden directories in one job per isolation level, record by record equal to the Java consumer's
result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.golden.cases import ISOLATION_LEVELS
from tests.golden.damage import DAMAGED, TABLE
from tests.golden.directories import INTACT
from tests.spark.answers import ALL_COLUMNS, Json, expected_lines, line, without_leader_epoch
from txnkafka import TopicPartition
from txnkafka.spark import batches

DIRECTORIES = 130
RECORDS = {"read_committed": 14_507, "read_uncommitted": 25_000}


class Expected(NamedTuple):
    """One directory, the partitions to read, and the records of each."""

    name: str
    path: str
    records: dict[TopicPartition, list[Json]]
    damaged: bool = False

    def assign(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for topic, partition in self.records:
            found[topic].append(partition)
        return found


def expected(level: str) -> list[Expected]:
    found: dict[str, Expected] = {}
    for each in INTACT:
        name = f"{each.case.name}/{each.name}"
        row = found.setdefault(name, Expected(name, each.path, {}))
        row.records[each.partition] = expected_lines(each.case, each.partition, level)
    for damage in TABLE:
        meets = damage.answer.meets_damage(level)
        records = damage.answer.records_around(level) if meets else damage.answer.records(level)
        lines = {DAMAGED: without_leader_epoch(records)}
        found[str(damage)] = Expected(str(damage), damage.path, lines, damaged=meets)
    return list(found.values())


def rows(name: str, found: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, TopicPartition, Json]]:
    """Yield the rows of a directory; runs in the worker."""
    for batch in found:
        milliseconds = batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000
        for row, timestamp in zip(batch.to_pylist(), milliseconds.tolist(), strict=True):
            yield name, TopicPartition(row["topic"], row["partition"]), line(row, timestamp)


@pytest.mark.parametrize("level", ISOLATION_LEVELS)
def test_every_directory(spark: SparkSession, level: str) -> None:
    wanted = expected(level)
    jobs = []
    for each in wanted:
        found = batches(
            spark,
            each.path,
            columns=ALL_COLUMNS,
            assign=each.assign(),
            isolation_level=level,
            fail_on_data_loss=not each.damaged,
        )
        jobs.append(found.mapPartitions(partial(rows, each.name)))
    got: dict[tuple[str, TopicPartition], list[Json]] = defaultdict(list)
    for name, topic_partition, record in spark.sparkContext.union(jobs).collect():
        got[name, TopicPartition(*topic_partition)].append(record)
    assert (len(wanted), sum(map(len, got.values()))) == (DIRECTORIES, RECORDS[level])
    for each in wanted:
        for topic_partition, records in each.records.items():
            assert got.get((each.name, topic_partition), []) == records, (each.name, topic_partition)
