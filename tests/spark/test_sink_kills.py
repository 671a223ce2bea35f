"""The streaming sink exactly once: real processes are killed at each step, and the query starts again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark import sink_faults, sink_runs
from tests.spark.sink_runs import BATCHES, check_complete, happened, prepare, run, visible

DECIDED = ("at the decision", "between two partitions", "after the decision", "before Spark's commit log")
QUICK = "between two partitions"


@pytest.mark.parametrize(
    "fault",
    [each if each == QUICK else pytest.param(each, marks=pytest.mark.slow) for each in sink_faults.KILLS],
)
def test_the_driver_is_killed(tmp_path: Path, fault: str) -> None:
    """With everything that it has started. The reader of the files sees the batch all or nothing, before the
    restart and after it."""
    prepare(tmp_path, fault=fault)
    assert run(tmp_path) == -9
    assert happened(tmp_path)
    before = len(visible(tmp_path))
    assert before in (1, 2)
    if fault not in DECIDED:
        assert before == 1
    assert run(tmp_path) == 0
    check_complete(tmp_path)
    first = {value.split()[1] for value in visible(tmp_path)[1]}
    last = {value.split()[1] for value in visible(tmp_path)[2]}
    assert (first == last) == (fault not in DECIDED)  # of the driver that was killed, if it had decided


@pytest.mark.slow
@pytest.mark.parametrize("fault", sink_faults.TASKS)
def test_a_task_dies(tmp_path: Path, fault: str) -> None:
    """Spark repeats the task; the query goes on. A killed worker leaves a staged file."""
    prepare(tmp_path, fault=fault)
    master = "local-cluster[2,1,1024]" if fault == "executor dies" else "local[2,2]"
    assert run(tmp_path, master=master) == 0
    assert happened(tmp_path)
    check_complete(tmp_path)
    left = list((tmp_path / "data.staging").iterdir())
    assert len(left) == (fault != "task fails")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*sink_faults.RAISES, *sink_faults.FULL_DISK])
def test_the_query_fails(tmp_path: Path, fault: str) -> None:
    """Spark calls ``abort`` with the batch, which may be decided; the query starts again."""
    prepare(tmp_path, fault=fault)
    assert run(tmp_path, master="local[2,1]") == 1
    assert happened(tmp_path)
    assert len(visible(tmp_path)) == (2 if fault == "commit raises after the decision" else 1)
    assert list((tmp_path / "data.staging").iterdir()) == []
    assert run(tmp_path) == 0
    check_complete(tmp_path)


@pytest.mark.slow
def test_two_drivers(tmp_path: Path) -> None:
    """Two queries with one transactional id, at a time: one of them fails, and each row is there once."""
    prepare(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "in").symlink_to(tmp_path / "in")
    (other / "data").symlink_to(tmp_path / "data")
    with (
        sink_runs.start(tmp_path, "transactionalId=job") as one,
        sink_runs.start(other, "transactionalId=job") as two,
    ):
        statuses = sorted([one.wait(sink_runs.TIMEOUT), two.wait(sink_runs.TIMEOUT)])
    assert statuses == [0, 1]
    check_complete(tmp_path, BATCHES)
    logs = [(folder / "driver.log").read_text() for folder in (tmp_path, other)]
    assert any("of transactional id job is refused" in log for log in logs)
