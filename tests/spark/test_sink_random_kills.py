"""Kills of the sink's processes that take minutes: of an executor, of one of two drivers, of a driver whose
target is a broker, and at random moments, TXNKAFKA_KILLS=100 of them, from TXNKAFKA_SEED. And a speculative
task, which needs two hosts.

After each kill, readers of the files see a prefix of the batches, each of them whole, and never fewer than
before. The random kill comes at any time between the begin of a driver's first batch and its end. It takes
the driver with everything that it started, or only its JVM: then its Python processes go on for a while, also
in the middle of a publication, beside the next driver.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from tests.conftest import LONG
from tests.server.serving import Serving, free_ports
from tests.spark.cluster import TIMEOUT, spark_home, without_pythonpath
from tests.spark.sink_faults import DECIDED
from tests.spark.sink_faults import KILLS as KILLS_OF
from tests.spark.sink_runs import (
    BATCHES,
    SERVERS,
    check_complete,
    happened,
    prepare,
    put,
    run,
    start,
    visible,
)
from txnkafka.broker.coordinators.marker_writer import MarkerWriter

KILLS = int(os.environ.get("TXNKAFKA_KILLS", "5" if LONG else "1"))
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))
OUTSIDE_A_BROKER = [fault for fault, (owner, *_) in KILLS_OF.items() if owner is not MarkerWriter]
NO_DELAY = ("--config", "group.initial.rebalance.delay.ms=0")
SPECULATION = " ".join(
    f"--conf spark.speculation{setting}"
    for setting in ("=true", ".interval=100ms", ".quantile=0.5", ".multiplier=1.1", ".minTaskRuntime=100ms")
)


@pytest.mark.slow
def test_random_kills(tmp_path: Path) -> None:
    random = Random(SEED)
    prepare(tmp_path)
    with start(tmp_path) as driver:
        wait_for_a_batch(tmp_path, driver)
        begun = time.monotonic()
        assert driver.wait(TIMEOUT) == 0
        seconds = time.monotonic() - begun
    batches = before = BATCHES
    for kill in range(KILLS):
        for _ in range(BATCHES):
            put(tmp_path, batches)
            batches += 1
        with start(tmp_path) as driver:
            wait_for_a_batch(tmp_path, driver)
            time.sleep(random.uniform(0, seconds))
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
@pytest.mark.parametrize("fault", OUTSIDE_A_BROKER)
def test_the_driver_is_killed_and_the_target_is_a_broker(tmp_path: Path, fault: str) -> None:
    """The broker goes on. A transaction that the driver has not decided stays open until the restart."""
    prepare(tmp_path, fault=fault)
    with Serving(tmp_path / "data", *NO_DELAY) as server:
        options = (f"{SERVERS}={server.address}", f"stagingPath={tmp_path / 'data.staging'}")
        assert run(tmp_path, *options) == -9
        assert happened(tmp_path)
        assert len(visible(tmp_path)) == (2 if fault in DECIDED else 1)
        assert run(tmp_path, *options) == 0
        assert server.stop() == 0
    check_complete(tmp_path)


@pytest.mark.slow
def test_a_speculative_task(tmp_path: Path) -> None:
    """A task hangs after it has staged its rows, and its copy on another host succeeds: the staged file of
    the first attempt is left, and its rows are not in the log."""
    prepare(tmp_path, fault="task is slow")
    with standalone_cluster(tmp_path) as master:
        assert run(tmp_path, master=master, submit=SPECULATION) == 0
    assert happened(tmp_path)
    check_complete(tmp_path)
    assert len(list((tmp_path / "data.staging").iterdir())) >= 1  # other tasks may have copies


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start a master, and two workers on addresses that Spark takes for two hosts; yield the master's URL."""
    (port,) = free_ports(1)
    master = f"spark://127.0.0.1:{port}"
    home = spark_home(folder)
    spark_class = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]
    commands = [["master.Master", "--host", "127.0.0.1", "--port", str(port)]]
    for host in ("127.0.0.2", "127.0.0.3"):
        commands.append(["worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", master])
    with ExitStack() as stack:
        log = stack.enter_context((folder / "cluster.log").open("ab"))
        for name, *arguments in commands:
            command = [spark_class[0], f"{spark_class[1]}.{name}", *arguments, "--webui-port", "0"]
            environment = {**without_pythonpath(), "SPARK_HOME": str(home)}
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            stack.callback(process.wait, TIMEOUT)
            stack.callback(process.kill)
        yield master


@pytest.mark.slow
def test_two_drivers(tmp_path: Path) -> None:
    """Two queries run at a time with one transactional id: one fails, and each row is written once."""
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
