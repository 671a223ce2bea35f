"""The streaming sink exactly once: real processes are killed at each step, and the query starts again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.conftest import LONG
from tests.spark import sink_faults
from tests.spark.sink_runs import check_complete, happened, prepare, run, stream, visible

KILLS = [*sink_faults.KILLS] if LONG else ["between two partitions"]
SHORT = {"request.timeout": 4000, "delivery.timeout": 5000, "max.block": 5000}


@pytest.mark.slow
@pytest.mark.parametrize("fault", KILLS)
def test_the_driver_is_killed(tmp_path: Path, fault: str) -> None:
    """With everything that it has started. The reader of the files sees the batch all or nothing, before the
    restart and after it."""
    prepare(tmp_path, fault=fault)
    assert run(tmp_path) == -9
    assert happened(tmp_path)
    before = len(visible(tmp_path))
    assert before in (1, 2)
    if fault not in sink_faults.DECIDED:
        assert before == 1
    assert run(tmp_path) == 0
    check_complete(tmp_path)
    first = {value.split()[1] for value in visible(tmp_path)[1]}
    last = {value.split()[1] for value in visible(tmp_path)[2]}
    # the second batch is of the driver that was killed, if it had decided
    assert (first == last) == (fault not in sink_faults.DECIDED)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "left"), [("task fails", 0), ("worker dies", 1)])
def test_a_task_is_repeated(spark: SparkSession, tmp_path: Path, fault: str, left: int) -> None:
    """The query goes on. A killed worker leaves a staged file."""
    prepare(tmp_path, fault=fault)
    stream(spark, tmp_path)
    assert happened(tmp_path)
    check_complete(tmp_path)
    assert staged(tmp_path) == left


@pytest.mark.parametrize(
    "fault",
    [
        each if each == "commit raises after the decision" else pytest.param(each, marks=pytest.mark.slow)
        for each in sink_faults.RAISES
    ],
)
def test_the_query_fails(spark: SparkSession, tmp_path: Path, fault: str) -> None:
    """Spark calls ``abort`` with the batch, which may be decided; the query starts again."""
    prepare(tmp_path, fault=fault)
    with pytest.raises(StreamingQueryException):
        stream(spark, tmp_path)
    assert happened(tmp_path)
    assert len(visible(tmp_path)) == (2 if fault == "commit raises after the decision" else 1)
    assert staged(tmp_path) == 0
    stream(spark, tmp_path)
    check_complete(tmp_path)


@pytest.mark.slow
def test_no_room_to_stage(spark: SparkSession, tmp_path: Path) -> None:
    """The task fails and removes its file; Spark repeats it."""
    prepare(tmp_path, fault="full disk while staging")
    stream(spark, tmp_path)
    assert happened(tmp_path)
    check_complete(tmp_path)
    assert staged(tmp_path) == 0


@pytest.mark.slow
def test_no_room_to_publish(spark: SparkSession, tmp_path: Path) -> None:
    """The transaction is not committed; with room again the batch is published."""
    prepare(tmp_path, fault="full disk while publishing")
    with pytest.raises(StreamingQueryException):
        stream(spark, tmp_path, **{f"kafka.{name}.ms": str(ms) for name, ms in SHORT.items()})
    assert happened(tmp_path)
    assert len(visible(tmp_path)) == 1
    assert staged(tmp_path) == 0
    (tmp_path / "faults" / "full").unlink()
    stream(spark, tmp_path)
    check_complete(tmp_path)


def staged(folder: Path) -> int:
    """Return the number of files that are left in the staging directory."""
    return len(list((folder / "data.staging").iterdir()))
