"""Opening a data directory: after a crash, when all of a large log is read again, and after a clean stop,
with very many partitions. txnkafka's DataDirectory compared with the LogManager of Kafka's broker.

Every round starts a new Python process and a new JVM; CPU time of all their threads counts from the moment
when opening begins. The same in a JVM that has done it several times shows Kafka's own code without the
compiler's work.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.harness import Comparison, Contest, Side, Timing
from bench.java import BUILD, JavaProcess
from bench.segments import MIB, Input, ready
from txnkafka._core.encode import encode_batch
from txnkafka._core.producer_table import ProducerTable
from txnkafka.storage.formats.checkpoint import format_clean_shutdown

__all__ = ["contests"]

NOW_MS = 1_700_000_000_000
RECOVERY_GOAL = 20.0
PRODUCERS = 100_000
WARM_ROUNDS = 3
# Disks take minutes to create and remove so many small files, and neither side waits for the disk here.
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else BUILD / "bench"
OPEN = [sys.executable, "-m", "bench.opened"]
NOTE = (
    "recovery, opening: CPU time of all threads of a new process from the moment when opening begins, the "
    f"JVM's compiler and collector included; `java, warm` is a JVM that has done it {WARM_ROUNDS} times "
    "before. Memory is the growth of Kafka's heap and of txnkafka's process. Opening is measured in /dev/shm."
)


class Stop(Protocol):
    """A directory to open: its path, and the state in which it was left."""

    @property
    def place(self) -> Path: ...

    def make(self, directory: Path) -> None:
        """Create the directory in this state."""

    def restore(self, directory: Path) -> None:
        """Restore this state after a side opened the directory and was killed."""

    def result(self, directory: Path) -> object:
        """Return the result of opening, after a clean close."""


class _Opened:
    """A directory that one side opens: a separate copy, since every side writes to it."""

    output = "logs"

    def __init__(self, name: str, stop: Stop) -> None:
        self.name = name
        self._stop = stop
        self._directory = stop.place / name.replace(" ", "-").replace(",", "")

    def warm(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._stop.make(self._directory)

    def run(self) -> Timing:
        self._stop.restore(self._directory)
        answer = self._open(close=False)
        return Timing(answer["cpu_ns"] / 1e9, answer["wall_ns"] / 1e9, answer["logs"], answer["bytes"])

    def _open(self, *, close: bool) -> dict[str, int]:
        raise NotImplementedError

    def digest(self) -> object:
        self._stop.restore(self._directory)
        answer = self._open(close=True)
        return answer["logs"], answer["offsets"], self._stop.result(self._directory)

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


class OpenSide(_Opened):
    """txnkafka, in a new process."""

    def _open(self, *, close: bool) -> dict[str, int]:
        command = [*OPEN, str(self._directory), *(["close"] if close else [])]
        process = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        answer: dict[str, int] = json.loads(process.stdout)
        return answer


class JavaOpenSide(_Opened):
    """Kafka, in a new JVM, or in one that has done it before."""

    def __init__(self, name: str, stop: Stop, *, warm: bool = False) -> None:
        super().__init__(name, stop)
        self._process = JavaProcess() if warm else None

    def warm(self) -> None:
        super().warm()
        for _ in range(WARM_ROUNDS if self._process else 0):
            self.run()

    def _open(self, *, close: bool) -> dict[str, int]:
        process = self._process or JavaProcess()
        answer = process.ask("load", directory=self._directory)
        if close or self._process:
            process.ask("unload")
        if process is not self._process:
            process.close()
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
        super().close()


@dataclass(frozen=True)
class Unflushed:
    """A directory whose broker was killed before it flushed anything: a log of ``size`` bytes, and one in
    which ``producers`` have written a batch each."""

    size: int
    producers: int
    place: Path = BUILD / "bench" / "opened"

    def make(self, directory: Path) -> None:
        _link(ready(Input("100", self.size)), directory / "bench-0")
        _link(self._producers_log(), directory / "producers-0")

    def restore(self, directory: Path) -> None:
        shutil.rmtree(directory)
        self.make(directory)

    def result(self, directory: Path) -> object:
        """Return the indexes."""
        digest = hashlib.sha256()
        for file in sorted(directory.glob("*/*index")):
            digest.update(b"%s " % str(file.relative_to(directory)).encode())
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def _producers_log(self) -> Path:
        path = BUILD / "bench" / "batches" / f"producers-{self.producers}" / f"{0:020}.log"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            rows: list[Any] = [(None, b"%0100d" % i, NOW_MS, []) for i in range(10)]
            with path.open("wb") as file:
                for i in range(self.producers):
                    file.write(
                        encode_batch(
                            rows,
                            base_offset=10 * i,
                            partition_leader_epoch=0,
                            producer_id=2_000_000 + i,
                            producer_epoch=0,
                            base_sequence=0,
                        )
                    )
        return path


@dataclass(frozen=True)
class Stopped:
    """A directory of ``partitions`` with one batch each, after a clean stop."""

    partitions: int
    place: Path = MEMORY / "txnkafka-bench"

    def make(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        log = encode_batch([(b"key", b"value", NOW_MS, [])], partition_leader_epoch=0)
        entry = NOW_MS.to_bytes(8, "big") + bytes(4)
        files = {
            f"{0:020}.log": bytes(log),
            f"{0:020}.index": b"",
            f"{0:020}.timeindex": entry,
            f"{1:020}.snapshot": ProducerTable().snapshot(),
            "leader-epoch-checkpoint": b"0\n1\n0 0\n",
            "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg\n",
        }
        for partition in self._partitions(directory):
            partition.mkdir()
            for name, content in files.items():
                (partition / name).write_bytes(content)

    def restore(self, directory: Path) -> None:
        """Trim the indexes: Kafka preallocates them, and trims them only at a clean stop."""
        for partition in self._partitions(directory):
            os.truncate(partition / f"{0:020}.index", 0)
            os.truncate(partition / f"{0:020}.timeindex", 12)
        points = "".join(f"bench {i} 1\n" for i in range(self.partitions))
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (directory / name).write_text(f"0\n{self.partitions}\n{points}")
        (directory / ".kafka_cleanshutdown").write_bytes(format_clean_shutdown(-1))

    def result(self, directory: Path) -> object:
        """Return whether it was closed cleanly again."""
        return (directory / ".kafka_cleanshutdown").exists()

    def _partitions(self, directory: Path) -> list[Path]:
        return [directory / f"bench-{i}" for i in range(self.partitions)]


def _link(segment: Path, partition: Path) -> None:
    partition.mkdir(parents=True)
    os.link(segment, partition / segment.name)
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def contests(plan: object) -> list[Contest]:
    """Return the contests: nothing was flushed, and every batch is read; or everything was closed cleanly."""
    size, partitions = plan.verify, plan.partitions  # type: ignore[attr-defined]  # a bench.rows.Plan
    rounds = plan.start_rounds  # type: ignore[attr-defined]
    return [_recovery(Unflushed(size, PRODUCERS), rounds), _opening(Stopped(partitions), rounds)]


def _recovery(unflushed: Unflushed, rounds: int) -> Contest:
    def sides() -> list[Side]:
        return [
            OpenSide("txnkafka", unflushed),
            JavaOpenSide("java LogManager", unflushed),
            JavaOpenSide("java, warm", unflushed, warm=True),
        ]

    comparisons = [
        Comparison("txnkafka", "java LogManager", RECOVERY_GOAL),
        Comparison("txnkafka", "java, warm"),
    ]
    name = f"recovery of {unflushed.size // MIB} MiB and {unflushed.producers:,} producers"
    return Contest(name, "start", lambda: 1, sides, comparisons, rounds, NOTE)


def _opening(stopped: Stopped, rounds: int) -> Contest:
    def sides() -> list[Side]:
        return [OpenSide("txnkafka", stopped), JavaOpenSide("java LogManager", stopped)]

    name = f"opening of {stopped.partitions:,} partitions"
    return Contest(name, "start", lambda: 1, sides, [Comparison("txnkafka", "java LogManager")], rounds, NOTE)
