"""Opening a data directory: after a crash, when all of a large log is read again, and after a clean stop, with
very many partitions. txnkafka's DataDirectory beside the LogManager of Kafka's broker.

A start is a start: a new Python process and a new JVM for every round, CPU time of all their threads
from the moment when opening begins. The same in a JVM that has done it several times shows Kafka's own
code without the compiler's work.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Comparison, Contest, Side, Timing
from bench.java import BUILD, JavaProcess
from bench.segments import MIB, Input, ready
from txnkafka._core.encode import encode_batch
from txnkafka.storage.checkpoint import format_clean_shutdown

__all__ = ["opening", "recovery"]

NOW_MS = 1_700_000_000_000
RECOVERY_GOAL = 10.0
WARM_ROUNDS = 3
OPEN = [sys.executable, "-m", "bench.opened"]
NOTE = (
    "recovery, opening: CPU time of all threads of a new process from the moment when opening begins, the "
    "JVM's compiler and collector among them; `java, warm` is a JVM that has done it {} times before. Kafka's "
    "broker gives memory for its heap, txnkafka's process what it grew by."
).format(WARM_ROUNDS)


class _Directory:
    """What a side opens: a copy of its own, since both sides write into it."""

    output = "logs"

    def __init__(self, name: str, make: Callable[[Path], None], *, kept: bool) -> None:
        self.name = name
        self._make = make
        self._kept = kept
        self._directory = BUILD / "bench" / "opened" / name.replace(" ", "-").replace(",", "")
        self._seen: dict[str, int] = {}

    def warm(self) -> None:
        self._new()
        self.run()

    def run(self) -> Timing:
        if not self._kept:
            self._new()
        answer = self._open()
        self._seen = {name: answer[name] for name in ("logs", "offsets")}
        return Timing(answer["cpu_ns"] / 1e9, answer["wall_ns"] / 1e9, answer["logs"], answer["bytes"])

    def _new(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._make(self._directory)

    def _open(self) -> dict[str, int]:
        raise NotImplementedError

    def digest(self) -> object:
        """What is there afterwards: logs, offsets, and the indexes that follow from the logs."""
        digest = hashlib.sha256()
        for file in sorted(self._directory.glob("*/*index")):
            digest.update(b"%s " % str(file.relative_to(self._directory)).encode())
            digest.update(file.read_bytes())
        return {**self._seen, "indexes": digest.hexdigest()}

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


class OpenSide(_Directory):
    """txnkafka, in a new process."""

    def _open(self) -> dict[str, int]:
        process = subprocess.run([*OPEN, str(self._directory)], stdout=subprocess.PIPE, check=True)
        answer: dict[str, int] = json.loads(process.stdout)
        return answer


class JavaOpenSide(_Directory):
    """Kafka, in a new JVM, or in one that has done it before."""

    def __init__(self, make: Callable[[Path], None], *, kept: bool, warm: bool) -> None:
        super().__init__("java, warm" if warm else "java LogManager", make, kept=kept)
        self._process = JavaProcess() if warm else None

    def warm(self) -> None:
        self._new()
        if self._process is not None:
            for _ in range(WARM_ROUNDS):
                self.run()

    def _open(self) -> dict[str, int]:
        process = self._process or JavaProcess()
        answer = process.ask("load", directory=self._directory)
        if process is not self._process:
            process.close()
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
        super().close()


@dataclass(frozen=True)
class Unflushed:
    """A directory whose broker died before it flushed anything: a log of ``size`` bytes and one in which
    ``producers`` have written a batch each."""

    size: int
    producers: int

    def make(self, directory: Path) -> None:
        _link(ready(Input("100", self.size)), directory / "bench-0")
        _link(self._producers_log(), directory / "producers-0")

    def _producers_log(self) -> Path:
        path = BUILD / "bench" / "batches" / f"producers-{self.producers}" / f"{0:020}.log"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = [(None, b"%0100d" % i, NOW_MS, []) for i in range(10)]
            with path.open("wb") as file:
                for i in range(self.producers):
                    fields = {"producer_id": 2_000_000 + i, "producer_epoch": 0, "base_sequence": 0}
                    file.write(encode_batch(rows, base_offset=10 * i, partition_leader_epoch=0, **fields))
        return path


@dataclass(frozen=True)
class Stopped:
    """A directory of ``partitions`` with one batch each, after a clean stop."""

    partitions: int

    def make(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        content = encode_batch([(b"key", b"value", NOW_MS, [])], partition_leader_epoch=0)
        offsets = ["0", str(self.partitions)]
        for i in range(self.partitions):
            partition = directory / f"bench-{i}"
            partition.mkdir()
            (partition / f"{0:020}.log").write_bytes(content)
            (partition / f"{0:020}.index").write_bytes(b"")
            (partition / f"{0:020}.timeindex").write_bytes(NOW_MS.to_bytes(8, "big") + bytes(4))
            (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
            (partition / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg\n")
            offsets.append(f"bench {i} 1")
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (directory / name).write_text("\n".join(offsets) + "\n")
        (directory / ".kafka_cleanshutdown").write_bytes(format_clean_shutdown(-1))


def _link(segment: Path, partition: Path) -> None:
    partition.mkdir(parents=True)
    os.link(segment, partition / segment.name)


def recovery(size: int, rounds: int) -> Iterator[Contest]:
    """Nothing was flushed: every batch is read, and what follows from the log is made anew."""
    unflushed = Unflushed(size, 100_000)
    goals = {"java LogManager": RECOVERY_GOAL, "java, warm": None}
    yield _contest(f"recovery of {size // MIB} MiB and 100,000 producers", unflushed.make, goals, rounds, kept=False)


def opening(partitions: int, rounds: int) -> Iterator[Contest]:
    """Everything was closed in order, and is again after every round."""
    stopped = Stopped(partitions)
    goals = {"java LogManager": None, "java, warm": None}
    yield _contest(f"opening of {partitions:,} partitions", stopped.make, goals, rounds, kept=True)


def _contest(
    name: str, make: Callable[[Path], None], goals: dict[str, float | None], rounds: int, *, kept: bool
) -> Contest:
    def sides() -> list[Side]:
        java = [JavaOpenSide(make, kept=kept, warm=warm) for warm in (False, True)]
        return [OpenSide("txnkafka", make, kept=kept), *java]

    comparisons = [Comparison("txnkafka", against, goal) for against, goal in goals.items()]
    return Contest(name, "start", lambda: 1, sides, comparisons, rounds, NOTE)
