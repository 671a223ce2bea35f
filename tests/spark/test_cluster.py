"""On a cluster: executors whose Python has no txnkafka, and executors that are killed.

Each test starts two executors, which takes half a minute; without TXNKAFKA_LONG only one of them runs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import LONG
from tests.golden.cases import case
from tests.spark import cluster
from tests.spark.large_log import RECORDS, committed_offsets, write_large_log
from txnkafka.cli.main import cli

DRIVERS = Path(__file__).parent
INTERLEAVED = case("interleaved")
RECIPES = ["ship", "archives", "pip"]
WAYS = ["batches", "source"]


def test_what_is_left_out(tell: list[str]) -> None:
    if not LONG:
        tell.append(f"left out: recipes for a cluster ({', '.join(RECIPES)}), killed executors by the source")
        tell.append("  these run with TXNKAFKA_LONG=1")


@pytest.mark.parametrize("recipe", RECIPES if LONG else [])
def test_recipes_of_the_docs(recipe: str, tmp_path: Path) -> None:
    python, submit = cluster.executor_python(), ()
    if recipe == "pip":
        python = cluster.pip_python(tmp_path / "python")
    if recipe == "archives":
        submit = spark_bundle_options(tmp_path)
    program, logs = DRIVERS / "recipe_driver.py", str(INTERLEAVED.logs)
    found = cluster.run_driver(program, python, tmp_path, logs, recipe, submit=submit)
    where = "site-packages/txnkafka/" if recipe == "pip" else f"{tmp_path}/spark/work/"
    assert all(executable == str(python) for executable, *_ in found["places"])
    assert all(where in path for _, path, _ in found["places"])
    assert len(found["places"]) == (1 if recipe == "pip" else 2)
    committed, everything = (
        sum(
            len(INTERLEAVED.expected_records(each, level))
            for each in INTERLEAVED.partitions()
            if not each.topic.startswith("__")
        )
        for level in ("read_committed", "read_uncommitted")
    )
    assert (found["batches"], found["source"], found["decoded"]) == (committed, committed, everything)


def spark_bundle_options(folder: Path) -> tuple[str, ...]:
    """What the command printed, as a shell would pass it on."""
    from click.testing import CliRunner

    done = CliRunner().invoke(cli, ["spark-bundle", "-o", f"{folder}/txnkafka.tar.gz"], standalone_mode=False)
    assert done.exception is None
    return tuple(done.stdout.split())


@pytest.mark.parametrize("way", WAYS if LONG else WAYS[:1])
def test_a_killed_executor_changes_no_row(way: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    rounds = write_large_log(logs, partitions=2, segments=2, segment_bytes=64 << 20)
    found = cluster.run_driver(
        DRIVERS / "kill_driver.py", cluster.executor_python(), tmp_path, str(logs), way
    )
    assert found["killer"]["done"] < found["killer"]["of"]
    assert found["disturbed"] == found["undisturbed"]
    offsets = np.array(committed_offsets(rounds))
    assert len(offsets) == 2 * RECORDS * rounds
    expected: dict[str, Any] = {
        "batches": hashlib.sha256(offsets.tobytes()).hexdigest(),
        "source": [len(offsets), int(offsets.sum()), int((offsets * offsets % 1000003).sum())],
    }
    got = {"batches": found["disturbed"]["0"], "source": found["disturbed"]["0"][:3]}
    assert got[way] == expected[way]
