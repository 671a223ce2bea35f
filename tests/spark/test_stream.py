"""``spark.readStream.format("txnkafka")`` over directories, with Spark's engine, checkpoints and retries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.conftest import SPARK
from tests.spark.streams import flat, run, started
from tests.unit.logdir.logs import batch, write_log
from tests.unit.spark.stream_logs import log

OFFSETS = "offset"
OPEN = {"producer_id": 7, "producer_epoch": 3, "transactional": True}


def test_a_task_that_is_retried_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    log(tmp_path, batches=3)
    found: list[Any] = []

    def fails_once(batches: Any) -> Any:
        context = TaskContext.get()
        yield from batches
        if context is not None and context.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails after its rows")

    def take(frame: DataFrame, _: int) -> None:
        write_log(tmp_path, "t-0", {6: [batch(6)]})  # the log grows between the attempts
        found.extend(frame.select("offset").mapInArrow(fails_once, "offset long").collect())

    started(spark, str(tmp_path), tmp_path / "checkpoint", take).awaitTermination()
    assert [row.offset for row in found] == [0, 1, 2, 3, 4, 5]


def test_a_transaction_that_stays_open_is_in_the_progress(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    write_log(tmp_path, "t-0", {0: [batch(0), batch(2, **OPEN), batch(4)]})
    query = started(spark, str(tmp_path), tmp_path / "checkpoint", lambda frame, _: frame.count())
    query.awaitTermination()
    assert query.lastProgress is not None
    (source,) = query.lastProgress["sources"]
    assert source["numInputRows"] == 2
    if SPARK >= (4, 2):
        latest = json.loads(source["latestOffset"])
        assert latest["t"] == {"0": 2}
        assert latest["#heldBack"]["t-0"].items() >= {
            "lastStableOffset": 2, "logEndOffset": 6, "producerId": 7, "producerEpoch": 3
        }.items()  # fmt: skip


def test_lost_offsets_fail_the_query(spark: SparkSession, tmp_path: Path) -> None:
    root, checkpoint = tmp_path / "logs", tmp_path / "checkpoint"
    root.mkdir()
    log(root)
    run(spark, str(root), checkpoint)
    (root / "t-0" / f"{0:020d}.log").unlink()
    write_log(root, "t-0", {8: [batch(8)]})
    with pytest.raises(PySparkException, match="t-0: offsets 4 to 7 deleted before the stream read them"):
        run(spark, str(root), checkpoint)
    rows = run(spark, str(root), checkpoint, OFFSETS, failOnDataLoss="false")
    assert flat(rows) == [(8,), (9,)]
