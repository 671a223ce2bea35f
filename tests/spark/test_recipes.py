"""Long tests on a cluster: the ways of docs/spark.md to install the package there, and an executor killed
under SQL. Each test starts two executors, which takes half a minute: these run with TXNKAFKA_LONG only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from tests.golden.cases import case
from tests.spark import cluster
from tests.spark.conftest import SPARK
from tests.spark.large_log import committed_offsets, write_large_log
from txnkafka.cli.main import cli
from txnkafka.spark.executors import LIBRARIES

RECIPE, KILL = (Path(__file__).with_name(f"{name}_driver.py") for name in ("recipe", "kill"))
INTERLEAVED = case("interleaved")


def run_recipe(python: Path, folder: Path, recipe: str, submit: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = cluster.run_driver(
        RECIPE, python, folder, str(INTERLEAVED.logs), recipe, submit=submit
    )
    return found


def check_answers(found: dict[str, Any]) -> None:
    """Check records from ``batches`` and from SQL, and bytes decoded by a function."""
    committed, everything = (
        sum(
            len(INTERLEAVED.expected_records(each, level))
            for each in INTERLEAVED.partitions()
            if not each.topic.startswith("__")
        )
        for level in ("read_committed", "read_uncommitted")
    )
    assert (found["batches"], found["source"]) == (committed, committed)
    if SPARK >= (4, 1):
        assert found["decoded"] == everything


def check_unpacked(found: dict[str, Any], python: Path, folder: Path) -> None:
    """Check that each executor runs the package unpacked in its own directory."""
    assert {executable for executable, _ in found["places"]} == {str(python)}
    paths = {path for _, path in found["places"]}
    assert len(paths) == 2
    assert all(path.startswith(f"{folder}/spark/work/") for path in paths)


def test_ship(tmp_path: Path) -> None:
    python = cluster.executor_python()
    found = run_recipe(python, tmp_path, "ship")
    check_unpacked(found, python, tmp_path)
    check_answers(found)


def test_archives(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli, ["spark-bundle", "-o", f"{tmp_path}/txnkafka.tar.gz"], standalone_mode=False
    )
    python = cluster.executor_python()
    found = run_recipe(python, tmp_path, "archives", submit=tuple(done.stdout.split()))
    check_unpacked(found, python, tmp_path)
    check_answers(found)


def test_pip_on_all_nodes(tmp_path: Path) -> None:
    """Spark finds the format without registration."""
    python = cluster.pip_python(tmp_path / "python")
    found = run_recipe(python, tmp_path, "pip")
    ((executable, path),) = found["places"]
    assert executable == str(python)
    assert path.startswith(f"{tmp_path}/python/lib")
    check_answers(found)


def test_ship_reports_what_executors_lack(tmp_path: Path) -> None:
    python = cluster.empty_python(tmp_path / "python")
    error = run_recipe(python, tmp_path, "ship")["error"]
    assert f"libraries are missing in {python}: {' '.join(LIBRARIES)}. Install them there" in error
    assert len(error.splitlines()) == 2


def test_an_executor_killed_under_sql(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    rounds = write_large_log(logs, partitions=2, segments=2, segment_bytes=64 << 20)
    found = cluster.run_driver(KILL, cluster.executor_python(), tmp_path, str(logs), "source")
    assert 0 < found["killer"]["done"] < found["killer"]["of"]
    assert found["disturbed"] == found["undisturbed"]
    offsets = np.array(committed_offsets(rounds))
    expected = [len(offsets), int(offsets.sum()), int((offsets * offsets % 1000003).sum())]
    assert [found["disturbed"][each][:3] for each in "01"] == [expected, expected]
