"""Appends to the log of a partition, of batches as producers send them: txnkafka's PartitionLog, Kafka's
UnifiedLog, and the bare system calls.

Every round begins with empty logs; opening and closing them is not timed. The logs and indexes that both
sides write must be equal, byte for byte.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.harness import Comparison, Contest, Limit, Side, Timing, timed
from bench.java import BUILD, JavaProcess
from txnkafka._core.encode import encode_batch
from txnkafka.broker.flush import FlushQueue
from txnkafka.config import LogConfig
from txnkafka.env import Bytes, LocalDataFiles
from txnkafka.env.data_files import LocalDataFile
from txnkafka.model import TopicPartition
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Start, open_log

__all__ = ["contests"]

NOW_MS = 1_700_000_000_000
PRODUCERS = 16
# Increase it when the same description gives other bytes.
VERSION = 1
WARM_ROUNDS = 6
RECORD_BYTES = 126
SIZES = (("100 B", 1), ("16 KB", 130), ("1 MB", 8000))
WITHOUT_WRITE = "txnkafka, without the write"
WITHOUT_WRITE_LIMIT_NS = 3000.0  # of an append of a small batch
# appends per group, partitions, size and number of records of a batch
GROUPS = ((1, 1, "100 B", 1), (8, 4, "16 KB", 130), (64, 16, "16 KB", 130))
COMPARED = ("log", "index", "timeindex")
DURABLE_GOAL = 0.8
APPEND_NOTE = (
    "append: one thread, page cache, segment.bytes and index.interval.bytes with Kafka's defaults; `pwrite` "
    "only writes the same batches to one file. Its speed depends on whether the page cache gets memory that "
    "the machine has touched before."
)
DURABLE_NOTE = (
    "durable append: after each group of appends every log is flushed, here by FlushQueue, in Java by "
    "UnifiedLog.flush, by `pwrite and fdatasync` with one call per file. The first group, which also makes "
    "files and names durable, is not timed. The disk dominates, so the goal is for wall clock time."
)


@dataclass(frozen=True)
class Batches:
    """``count`` batches of ``records`` records of 100 bytes, from idempotent producers in turn or without a
    producer; each ``group`` of appends over ``partitions`` is flushed together, 0 for never."""

    records: int
    count: int
    idempotent: bool = True
    partitions: int = 1
    group: int = 0

    @property
    def file(self) -> Path:
        """The data, created on first use."""
        kind = "idempotent" if self.idempotent else "plain"
        path = BUILD / "bench" / "batches" / f"{kind}-{self.records}-{self.count}-v{VERSION}"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(self._encoded()))
        return path

    def _encoded(self) -> Iterator[bytearray]:
        for number in range(self.count):
            first = number * self.records
            rows: list[Any] = [
                (b"%016d" % i, b"%0100d" % i, NOW_MS + i // 4, []) for i in range(first, first + self.records)
            ]
            turn, producer = divmod(number, PRODUCERS)
            if self.idempotent:
                sequence = turn * self.records
                yield encode_batch(rows, producer_id=producer, producer_epoch=0, base_sequence=sequence)
            else:
                yield encode_batch(rows)

    def read(self) -> list[bytearray]:
        content, batches, position = self.file.read_bytes(), [], 0
        while position < len(content):
            size = int.from_bytes(content[position + 8 : position + 12], "big") + 12
            batches.append(bytearray(content[position : position + size]))
            position += size
        return batches

    @property
    def batch_bytes(self) -> int:
        return self.file.stat().st_size // self.count


class _OverLogs:
    """Common to all sides: a directory that is empty before each round."""

    output = "logs"

    def __init__(self, name: str, batches: Batches) -> None:
        self.name = name
        self._batches = batches
        self._directory = BUILD / "bench" / "appended" / name.replace(" ", "-")

    def _fresh(self) -> list[Path]:
        shutil.rmtree(self._directory, ignore_errors=True)
        partitions = [self._directory / f"bench-{i}" for i in range(self._batches.partitions)]
        for partition in partitions:
            partition.mkdir(parents=True)
        return partitions

    def digest(self) -> object:
        digest = hashlib.sha256()
        for kind in COMPARED:
            for file in sorted(self._directory.glob(f"bench-*/*.{kind}")):
                content = file.read_bytes()
                if kind != "log":  # Kafka 4.4 leaves reserved zeros at the end of an active segment's indexes
                    content = content.rstrip(b"\0")
                digest.update(b"%s %d " % (str(file.relative_to(self._directory)).encode(), len(content)))
                digest.update(content)
        return digest.hexdigest()

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


class _NoWriteFiles(LocalDataFiles):
    """Files that ignore writes, so that only the work of the append itself is measured."""

    def create(self, path: str) -> LocalDataFile:
        file = super().create(path)
        file.write = _nothing  # type: ignore[method-assign]
        return file

    def open_to_write(self, path: str) -> LocalDataFile:
        file = super().open_to_write(path)
        file.write = _nothing  # type: ignore[method-assign]
        return file


def _nothing(position: int, parts: Sequence[Bytes]) -> None:
    pass


class AppendSide(_OverLogs):
    """Appends by txnkafka, with or without the write."""

    def __init__(self, batches: Batches, *, writes: bool = True) -> None:
        super().__init__("txnkafka" if writes else WITHOUT_WRITE, batches)
        self._writes = writes
        self._files = LocalDataFiles() if writes else _NoWriteFiles()
        self._input: list[bytearray] = []
        self._logs: list[PartitionLog] = []

    def warm(self) -> None:
        self._input = self._batches.read()
        self.run()

    def run(self) -> Timing:
        self._give_back()
        logs = self._logs = [
            open_log(
                self._files,
                str(directory),
                TopicPartition("bench", i),
                LogConfig(),
                Start(),
                now_ms=NOW_MS,
            ).log
            for i, directory in enumerate(self._fresh())
        ]
        for batch in self._input:
            batch[:8] = bytes(8)  # the last round set an offset
        first, count = self._batches.group, len(self._input)
        self._append_durably(logs, 0, first)
        timing: list[tuple[float, float]] = []
        with timed(timing):
            if first:
                self._append_durably(logs, first, count)
            else:
                for batch in self._input:
                    logs[0].append(batch, now_ms=NOW_MS)
        return Timing(*timing[0], count - first)

    def _give_back(self) -> None:
        """Drop the logs of a round without a flush, so that their unsynced bytes are not written."""
        for log in self._logs:
            log.local.close_files()

    def digest(self) -> object:
        if not self._writes:
            return None
        for log in self._logs:
            log.close()
        return super().digest()

    def close(self) -> None:
        self._give_back()
        super().close()

    def _append_durably(self, logs: list[PartitionLog], begin: int, end: int) -> None:
        flushes, group, count = FlushQueue(), self._batches.group, len(logs)
        released: list[Exception | None] = []
        for number in range(begin, end):
            log = logs[number % count]
            log.append(self._input[number], now_ms=NOW_MS)
            flushes.when_durable(log, released.append)
            if (number + 1) % group == 0:
                flush = flushes.begin()
                assert flush is not None
                flushes.finish(flush, flush.run())
                assert released == [None] * group
                released.clear()


class RawSide(_OverLogs):
    """The bare system calls, on files opened before."""

    def __init__(self, batches: Batches) -> None:
        super().__init__("pwrite and fdatasync" if batches.group else "pwrite", batches)
        self._input: list[bytearray] = []

    def warm(self) -> None:
        self._input = self._batches.read()
        self.run()

    def run(self) -> Timing:
        files = [os.open(path / "log", os.O_RDWR | os.O_CREAT) for path in self._fresh()]
        positions, first, count = [0] * len(files), self._batches.group, len(self._input)
        self._write(files, positions, 0, first)
        timing: list[tuple[float, float]] = []
        with timed(timing):
            self._write(files, positions, first, count)
        for file in files:
            os.close(file)
        return Timing(*timing[0], count - first)

    def _write(self, files: list[int], positions: list[int], begin: int, end: int) -> None:
        group, count = self._batches.group, len(files)
        for number in range(begin, end):
            to = number % count
            positions[to] += os.pwrite(files[to], self._input[number], positions[to])
            if group and (number + 1) % group == 0:
                for file in files:
                    os.fdatasync(file)

    def digest(self) -> object:
        return None  # bare writes assign no offsets


class JavaAppendSide(_OverLogs):
    """Appends by Kafka."""

    def __init__(self, batches: Batches) -> None:
        super().__init__("java UnifiedLog", batches)
        self._process = JavaProcess()

    def warm(self) -> None:
        self._process.ask("batches", file=self._batches.file)
        for _ in range(WARM_ROUNDS):
            self.run()

    def run(self) -> Timing:
        self._fresh()
        options = {"partitions": self._batches.partitions, "group": self._batches.group}
        answer = self._process.ask("append", directory=self._directory, **options)
        return Timing(answer["cpu_ns"] / 1e9, answer["wall_ns"] / 1e9, answer["batches"])

    def close(self) -> None:
        self._process.close()
        super().close()


def contests(plan: object) -> list[Contest]:
    """Batches of 16 KB and of 1 MB, plain and idempotent; then groups of them, flushed."""
    total, flushes = plan.append, plan.flushes  # type: ignore[attr-defined]  # a bench.rows.Plan
    rounds = plan.rounds  # type: ignore[attr-defined]
    found = [_append(label, records, total, rounds, idempotent=True) for label, records in SIZES]
    groups = GROUPS
    if plan.append_all:  # type: ignore[attr-defined]
        found += [_append(label, records, total, rounds, idempotent=False) for label, records in SIZES]
    else:
        groups = GROUPS[1:2]
    return [*found, *(_durable(group, flushes, 2 * rounds + 1) for group in groups)]


def _append(label: str, records: int, total: int, rounds: int, *, idempotent: bool) -> Contest:
    is_small = records == 1
    batches = Batches(records, total // ((16 if is_small else records) * RECORD_BYTES), idempotent)
    name = f"append {label}, {'idempotent' if idempotent else 'plain'}"
    comparisons = [Comparison("txnkafka", "java UnifiedLog"), Comparison("txnkafka", "pwrite")]
    contest = _contest(name, batches, comparisons, rounds, APPEND_NOTE)
    if not is_small:
        return contest
    return replace(
        contest,
        sides=lambda: [*contest.sides(), AppendSide(batches, writes=False)],
        limits=[Limit(WITHOUT_WRITE, WITHOUT_WRITE_LIMIT_NS)],
    )


def _durable(group: tuple[int, int, str, int], flushes: int, rounds: int) -> Contest:
    appends, partitions, label, records = group
    batches = Batches(records, (1 + flushes // partitions) * appends, True, partitions, appends)
    comparisons = [
        Comparison("txnkafka", "pwrite and fdatasync", DURABLE_GOAL, by_wall=True),
        Comparison("txnkafka", "pwrite and fdatasync"),
        Comparison("txnkafka", "java UnifiedLog", by_wall=True),
        Comparison("txnkafka", "java UnifiedLog"),
    ]
    name = f"durable append, {appends} of {label} over {partitions}"
    return _contest(name, batches, comparisons, rounds, DURABLE_NOTE)


def _contest(name: str, batches: Batches, comparisons: list[Comparison], rounds: int, note: str) -> Contest:
    def sides() -> list[Side]:
        return [AppendSide(batches), RawSide(batches), JavaAppendSide(batches)]

    return Contest(
        name,
        "appends",
        lambda: batches.count - batches.group,
        sides,
        comparisons,
        rounds,
        note,
        unit_bytes=lambda: batches.batch_bytes,
    )
