"""Large directories: the cost of planning and reading does not grow with the size of a segment.

Partitions are links to one segment, so that ten gigabytes of log need half a gigabyte of disk.
"""

from __future__ import annotations

import os
import resource
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.conftest import LONG
from tests.models.builder import Batch, PlainRecord
from tests.unit.logdir.logs import batch, write_log
from txnkafka.spark import batches
from txnkafka.spark.options import read_options
from txnkafka.spark.plan import plan_tasks

SEGMENT_BYTES = 512 << 20
PARTITIONS = 20 if LONG else 2
# A task needs a window, a decoded chunk of a megabyte and the batches that Arrow still uses; the rest is
# imports.
MAX_GROWTH = 96 << 20


@pytest.fixture
def large(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """Write a log directory; return it with the number of its records."""
    records = [PlainRecord(b"k%d" % i, b"v" * 900, i) for i in range(1000)]
    one = Batch(records=records).encode()
    copies = SEGMENT_BYTES // len(one)
    directory = tmp_path / "large-0"
    directory.mkdir()
    segment = directory / f"{0:020d}.log"
    with segment.open("wb") as out:
        for number in range(copies):
            out.write(struct.pack(">q", 1000 * number) + one[8:])  # the CRC does not cover the base offset
    for partition in range(1, PARTITIONS):
        other = tmp_path / f"large-{partition}"
        other.mkdir()
        os.link(segment, other / segment.name)
    yield str(tmp_path), PARTITIONS * copies * 1000
    for each in tmp_path.glob("large-*/*.log"):
        each.unlink()


def count_and_memory(found: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int]]:
    before = _peak()
    yield sum(each.num_rows for each in found), _peak() - before


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.slow
def test_a_scan_stays_within_its_memory(spark: SparkSession, large: tuple[str, int]) -> None:
    path, expected = large
    found = batches(spark, path, max_bytes_per_partition=1 << 30)
    assert found.getNumPartitions() <= PARTITIONS
    counts = found.mapPartitions(count_and_memory).collect()
    assert sum(count for count, _ in counts) == expected
    assert max(growth for _, growth in counts) < MAX_GROWTH
    print(f"{PARTITIONS * SEGMENT_BYTES >> 30} GiB, {max(growth for _, growth in counts) >> 20} MiB")


# the goal is five seconds for 1,000 partitions of 20 segments
@pytest.mark.slow
@pytest.mark.parametrize("partitions", [100, 1000] if LONG else [100])
def test_many_segments_are_planned(tmp_path: Path, partitions: int) -> None:
    """Twenty of each partition. Each segment gives a unit; the CPU time is printed."""
    for number in range(partitions):
        segments = {base: [batch(base)] for base in range(0, 40, 2)}
        write_log(tmp_path, f"many-{number}", segments)
    begin = time.process_time()
    tasks = plan_tasks([str(tmp_path)], read_options())
    seconds = time.process_time() - begin
    assert sum(len(task.units) for task in tasks) == 20 * partitions
    print(f"{20 * partitions} segments planned in {seconds:.2f} CPU-s")
