"""Addresses instead of paths: planned on the driver and read in the executors through fsspec."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.unit.logdir.logs import batch, write_log
from txnkafka.spark import batches, map_arrow

OPTIONS = {"auto_mkdir": False, "token": "open sesame"}


@pytest.fixture
def disks(tmp_path: Path) -> list[str]:
    """Write two log directories of one broker, with eight records."""
    for number in (0, 1):
        write_log(tmp_path / f"disk{number}", f"t-{number}", {0: [batch(0)], 2: [batch(2)]})
    return [f"local://{tmp_path}/disk{number}" for number in (0, 1)]


def test_the_source(spark: SparkSession, disks: list[str]) -> None:
    reader = spark.read.format("txnkafka").option("storageOptions", json.dumps(OPTIONS))
    frame = reader.schema("partition int, offset bigint, value binary").load(disks)
    rows = {(row.partition, row.offset, int(row.value)) for row in frame.collect()}
    assert rows == {(partition, offset, offset) for partition in (0, 1) for offset in range(4)}
    shown = StringIO()
    with redirect_stdout(shown):
        frame.explain("formatted")
    assert "sesame" not in shown.getvalue()


@pytest.mark.slow
def test_programs(spark: SparkSession, disks: list[str]) -> None:
    found = batches(spark, disks, columns=["offset"], storage_options=OPTIONS, min_partitions=4)
    assert sorted(found.flatMap(lambda each: each.column("offset").to_pylist()).collect()) == [
        0, 0, 1, 1, 2, 2, 3, 3
    ]  # fmt: skip
    frame = map_arrow(spark, lambda each: each, "offset long", disks, columns=["offset"])
    assert frame.count() == 8


@pytest.mark.slow
def test_an_error_in_the_executor_names_the_address(spark: SparkSession, disks: list[str]) -> None:
    found = batches(spark, disks, columns=["offset"])
    segment = Path(disks[0].removeprefix("local://"), "t-0", f"{2:020}.log")
    segment.unlink()
    with pytest.raises(Exception, match=f"cannot read local://{segment}: does not exist"):
        found.count()
