"""An executor that is killed while it reads changes no row. Two executors are started; test_recipes.py has
more such tests."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.spark import cluster
from tests.spark.large_log import RECORDS, committed_offsets, write_large_log

PROGRAM = Path(__file__).with_name("kill_driver.py")


@pytest.mark.slow
def test_batches(tmp_path: Path) -> None:
    """Offsets in their order, and every value. ``ship`` sends the package to the executors, also to the one
    that replaces the killed one."""
    logs = tmp_path / "logs"
    rounds = write_large_log(logs, partitions=2, segments=2, segment_bytes=64 << 20)
    found = cluster.run_driver(PROGRAM, cluster.executor_python(), tmp_path, str(logs), "batches")
    assert 0 < found["killer"]["done"] < found["killer"]["of"]
    assert found["disturbed"] == found["undisturbed"]
    offsets = np.array(committed_offsets(rounds))
    assert len(offsets) == 2 * RECORDS * rounds
    digest = hashlib.sha256(offsets.tobytes()).hexdigest()
    assert (found["disturbed"]["0"], found["disturbed"]["1"]) == (digest, digest)
