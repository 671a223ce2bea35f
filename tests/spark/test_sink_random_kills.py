"""Kills of the sink's processes that take minutes: of an executor, of one of two drivers, and at random
moments, TXNKAFKA_KILLS=100 of them, from TXNKAFKA_SEED.

After each kill, readers of the files see a prefix of the batches, each of them whole, and never fewer than
before. The kill takes the driver with everything that it started, or only its JVM: then its Python processes
go on for a while, also in the middle of a publication, beside the next driver.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.conftest import LONG
from tests.spark.cluster import TIMEOUT
from tests.spark.sink_runs import BATCHES, check_complete, happened, prepare, put, run, start, visible

KILLS = int(os.environ.get("TXNKAFKA_KILLS", "5" if LONG else "1"))
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))


@pytest.mark.slow
def test_random_kills(tmp_path: Path) -> None:
    random = Random(SEED)
    prepare(tmp_path)
    batches, before = 3, 0
    for kill in range(KILLS):
        put(tmp_path, batches)
        put(tmp_path, batches + 1)
        batches += 2
        with start(tmp_path) as driver:
            wait_for_a_batch(tmp_path, driver)
            time.sleep(random.uniform(0, 4))
            way = random.choice(["all", "JVM"])
            for process in victims(driver.pid, way):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            driver.kill()
        found = len(visible(tmp_path))
        print(f"kill {kill} of {way}: {found} of {batches} batches are there")
        assert found >= before
        before = found
    assert run(tmp_path) == 0
    check_complete(tmp_path, batches)


def wait_for_a_batch(folder: Path, driver: subprocess.Popen[bytes]) -> None:
    """Wait until Spark has begun the first batch of this driver: it plans it, or repeats the last one."""
    begun = time.time()
    while driver.poll() is None and time.time() < begun + TIMEOUT:
        # every start reads the offsets of the last batch, and writes those of the next one
        if any(path.stat().st_mtime > begun for path in (folder / "checkpoint").glob("offsets/*")):
            return
        if any(path.stat().st_mtime > begun for path in (folder / "data.staging").glob("*")):
            return
        time.sleep(0.02)


def victims(driver: int, way: str) -> list[int]:
    """Return the processes to kill: all that the driver has started, parents first, or those that are not
    Spark's Python processes."""
    found = [driver, *descendants(driver)]
    return found if way == "all" else [each for each in found if b"pyspark.daemon" not in command(each)]


def descendants(process: int) -> Iterator[int]:
    for each in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, each.read_text().split()):
                yield child
                yield from descendants(child)


def command(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


@pytest.mark.slow
def test_an_executor_is_killed(tmp_path: Path) -> None:
    """After it has staged the rows of a task, which another executor repeats."""
    prepare(tmp_path, fault="executor dies")
    assert run(tmp_path, master="local-cluster[2,1,1024]") == 0
    assert happened(tmp_path)
    check_complete(tmp_path)
    assert len(list((tmp_path / "data.staging").iterdir())) == 1


@pytest.mark.slow
def test_two_drivers(tmp_path: Path) -> None:
    """Two queries with one transactional id, at a time: one of them fails, and each row is there once."""
    prepare(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "in").symlink_to(tmp_path / "in")
    (other / "data").symlink_to(tmp_path / "data")
    with (
        start(tmp_path, "transactionalId=job") as one,
        start(other, "transactionalId=job") as two,
    ):
        statuses = sorted([one.wait(TIMEOUT), two.wait(TIMEOUT)])
    assert statuses == [0, 1]
    check_complete(tmp_path, BATCHES)
    logs = [(folder / "driver.log").read_text() for folder in (tmp_path, other)]
    assert any("of transactional id job is refused" in log for log in logs)
