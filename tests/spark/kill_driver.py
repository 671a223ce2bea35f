"""Reads a large log while an executor is killed: python kill_driver.py CHECKOUT RESULT LOGS WAY."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

CHECKOUT, RESULT, LOGS, WAY = sys.argv[1:]
sys.path.insert(0, CHECKOUT)

from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as sf  # noqa: E402

import txnkafka.spark  # noqa: E402
from tests.spark.cluster import session  # noqa: E402

if TYPE_CHECKING:
    import pyarrow as pa

TASK_BYTES = 4 << 20
Answer = dict[str, Any]


class Killer(threading.Thread):
    """Kills one executor when some tasks are done and others run."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(daemon=True)
        self._tracker = spark.sparkContext.statusTracker()
        self._driver = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self.found: dict[str, int] = {}

    def executors(self) -> list[int]:
        """Return the executors that this driver started."""
        listed = subprocess.check_output(["ps", "-eo", "pid,ppid,args"], text=True).splitlines()[1:]
        rows = (line.split(None, 2) for line in listed)
        return [
            int(number)
            for number, parent, command in rows
            if int(parent) == self._driver and "CoarseGrainedExecutorBackend" in command
        ]

    def run(self) -> None:
        victim, *_ = self.executors()
        while not self.found:
            for stage in map(self._tracker.getStageInfo, self._tracker.getActiveStageIds()):
                if stage and 3 < stage.numCompletedTasks < stage.numTasks - 8:
                    os.kill(victim, signal.SIGKILL)
                    self.found = {"done": stage.numCompletedTasks, "of": stage.numTasks}
            time.sleep(0.002)


def summary(batch: pa.RecordBatch) -> tuple[int, bytes, int]:
    """Summarise a batch in the executors: the partition, its offsets, a checksum of its values."""
    values = b"".join(batch.column("value").to_pylist())
    return (
        batch.column("partition")[0].as_py(),
        batch.column("offset").to_numpy().tobytes(),
        zlib.crc32(values),
    )


def by_batches(spark: SparkSession) -> Answer:
    """Compute digests of the offsets of each partition, in the order of arrival, and of all values."""
    found = txnkafka.spark.batches(spark, LOGS, max_bytes_per_partition=TASK_BYTES).map(summary).collect()
    offsets, values = defaultdict(hashlib.sha256), hashlib.sha256()
    for partition, each, checksum in found:
        offsets[partition].update(each)
        values.update(b"%d" % checksum)
    return {
        **{str(number): each.hexdigest() for number, each in offsets.items()},
        "values": values.hexdigest(),
    }


def by_source(spark: SparkSession) -> Answer:
    """Sum over the rows of each partition; the sums change when a row is lost, repeated or replaced."""
    frame = spark.read.format("txnkafka").option("maxBytesPerPartition", str(TASK_BYTES)).load(LOGS)
    sums = frame.groupBy("partition").agg(
        sf.count("*"),
        sf.sum("offset"),
        sf.expr("sum(offset * offset % 1000003)"),
        sf.expr("sum(crc32(value))"),
    )
    return {str(number): list(row) for number, *row in sums.collect()}


def run(spark: SparkSession) -> Answer:
    read = {"batches": by_batches, "source": by_source}[WAY]
    undisturbed = read(spark)
    killer = Killer(spark)
    killer.start()
    disturbed = read(spark)
    killer.join(timeout=10)
    return {"undisturbed": undisturbed, "disturbed": disturbed, "killer": killer.found}


spark = session()
try:
    txnkafka.spark.ship(spark)
    Path(RESULT).write_text(json.dumps(run(spark)))
finally:
    spark.stop()
