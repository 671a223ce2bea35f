"""Queries that end at the present end of the log, in batches with limits: Spark 4.2 and later."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from pyspark.sql import SparkSession

from tests.golden.cases import case
from tests.spark.streams import flat, run
from tests.unit.spark.stream_logs import log

OFFSETS = "offset"


def test_the_rows_are_those_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    path, limit = str(case("interleaved").answered), {"maxOffsetsPerTrigger": "300"}
    columns = "topic, partition, offset, key, value, timestamp, timestampType, to_json(headers)"
    rows = run(spark, path, tmp_path, columns, includeHeaders="true", **limit)
    whole = spark.read.format("txnkafka").option("includeHeaders", "true").load(path)
    assert len(rows) > 1
    assert sorted(map(str, flat(rows))) == sorted(
        str(tuple(row)) for row in whole.selectExpr(*columns.split(", ")).collect()
    )


def test_a_query_is_restarted_after_a_crash(spark: SparkSession, tmp_path: Path) -> None:
    """Spark had planned a batch, and perhaps run it, but not committed it; since then the log has grown."""
    root, checkpoint = tmp_path / "logs", tmp_path / "checkpoint"
    root.mkdir()
    log(root, batches=4)
    options = {"maxOffsetsPerTrigger": "3"}
    first = run(spark, str(root), checkpoint, OFFSETS, **options)
    assert [len(first[number]) for number in sorted(first)] == [3, 3, 2]
    for kept, repeated in ((1, [1, 2]), (None, [0, 1, 2])):
        for commit in (checkpoint / "commits").iterdir():
            number = commit.name.strip(".").split(".")[0]
            if number.isdecimal() and (kept is None or int(number) >= kept):
                commit.unlink()
        for entry in (checkpoint / "offsets").iterdir():
            number = entry.name.strip(".").split(".")[0]
            if number.isdecimal() and int(number) > repeated[0]:
                entry.unlink()
        log(root, batches=5)
        again = run(spark, str(root), checkpoint, OFFSETS, **options)
        assert again[repeated[0]] == first[repeated[0]]
        rest = [*chain(*(first[number] for number in range(repeated[0])))]
        assert rest + flat(again) == [(offset,) for offset in range(10)]
