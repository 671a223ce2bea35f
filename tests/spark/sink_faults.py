"""The sink with one planned fault: the format ``faulty``, whose option ``faults`` is a directory.

``faults/plan`` has the name of the fault, and is removed when it happens. It is planted in the processes that
Spark starts: the sink itself knows nothing of it.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from txnkafka.broker.coordinators.marker_writer import MarkerWriter
from txnkafka.client.producer import Producer
from txnkafka.env.data_files import LocalDataFile
from txnkafka.spark import TxnKafkaDataSource
from txnkafka.spark.sink.task import task_identity
from txnkafka.spark.sink.writers import StreamWriter, stream_writer
from txnkafka.staging import StagedFile

FAULTS = "faults"
BATCH = 1
DRIVER = "driver.pid"
KILLS = {
    "before anything": (Producer, "init_transactions", 1, "before"),
    "in the middle of the rows": (Producer, "send_batch", 3, "before"),
    "before the decision": (Producer, "commit_transaction", 1, "before"),
    "at the decision": (MarkerWriter, "append", 1, "before"),
    "between two partitions": (MarkerWriter, "append", 2, "before"),
    "after the decision": (Producer, "commit_transaction", 1, "after"),
    "before Spark's commit log": (StreamWriter, "commit", 1, "after"),
}
"""Where the driver dies. The decision is durable when the first marker is appended."""
DECIDED = ("at the decision", "between two partitions", "after the decision", "before Spark's commit log")
TASKS = {
    "task fails": (StagedFile, "finish", 1, "before"),
    "worker dies": (StagedFile, "finish", 1, "after"),
    "executor dies": (StagedFile, "finish", 1, "after"),
    "task is slow": (StagedFile, "finish", 1, "after"),
}
SLOW_SECONDS = 120
RAISES = {
    "commit raises before the decision": (Producer, "commit_transaction", 1, "before"),
    "commit raises after the decision": (Producer, "commit_transaction", 1, "after"),
}
FULL_DISK = {
    "full disk while staging": (StagedFile, "append", 2, "before"),
    "full disk while publishing": (Producer, "send_batch", 2, "before"),
}
PLACES = {**KILLS, **TASKS, **RAISES, **FULL_DISK}


class PlannedError(Exception):
    """The planned fault."""


class FaultySource(TxnKafkaDataSource):
    """The sink with a fault."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        options = {name: text for name, text in self.options.items() if name != FAULTS}
        writer: Any = stream_writer(options, schema, overwrite=overwrite)
        writer.__class__ = FaultyWriter
        writer.folder = Path(self.options[FAULTS])
        return writer  # type: ignore[no-any-return]

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        raise NotImplementedError


class FaultyWriter(StreamWriter):
    """Plants the fault in the processes that handle its batch."""

    folder: Path

    def write(self, iterator: Any) -> Any:
        batch = task_identity().batch
        if batch is not None and batch.number == BATCH:
            plant(self.folder)
        return super().write(iterator)

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        if batchId == BATCH:
            plant(self.folder)
        super().commit(messages, batchId)


_planted: list[tuple[type[Any], str, Any]] = []


def plant(folder: Path) -> None:
    """Let the planned fault happen in this process, instead of one that was planted before."""
    while _planted:
        owner, name, original = _planted.pop()
        setattr(owner, name, original)
    try:
        plan = (folder / "plan").read_text()
    except FileNotFoundError:
        return
    owner, name, count, when = PLACES[plan]
    original = getattr(owner, name)
    _planted.append((owner, name, original))
    setattr(owner, name, _faulty(original, folder, plan, count, when))


def _faulty(original: Callable[..., Any], folder: Path, plan: str, count: int, when: str) -> Any:
    calls = 0

    def call(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if when == "before" and calls == count:
            happen(folder, plan)
        result = original(*arguments, **more)
        if when == "after" and calls == count:
            happen(folder, plan)
        return result

    return call


def happen(folder: Path, plan: str) -> None:
    """Let the fault happen, unless it did."""
    try:
        os.rename(folder / "plan", folder / "happened")
    except FileNotFoundError:
        return
    if plan in KILLS:
        kill_driver(folder)
    if plan == "task is slow":
        time.sleep(SLOW_SECONDS)
        return
    if plan == "worker dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if plan == "executor dies":
        kill_executor()
    if plan == "full disk while staging":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if plan == "full disk while publishing":
        fill_the_disk(folder)
        return
    raise PlannedError(plan)


def fill_the_disk(folder: Path) -> None:
    """Let every write of this process fail, as long as ``folder/full`` exists."""
    (folder / "full").touch()
    original = LocalDataFile.write

    def write(self: LocalDataFile, position: int, parts: Any) -> None:
        if (folder / "full").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        original(self, position, parts)

    LocalDataFile.write = write  # type: ignore[method-assign]


def kill_driver(folder: Path) -> None:
    """Kill this process and the processes above it, up to the driver program; the JVM is one of them."""
    driver = int((folder / DRIVER).read_text())
    chain = [os.getpid()]
    while chain[-1] not in (driver, 1):
        chain.append(_parent(chain[-1]))
    for process in reversed(chain):
        os.kill(process, signal.SIGKILL)
    time.sleep(60)


def kill_executor() -> None:
    """Kill the JVM of the executor, and the worker."""
    above = _parent(_parent(os.getpid()))
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{above}/cmdline").read_bytes()
    os.kill(above, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
