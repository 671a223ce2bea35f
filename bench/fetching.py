"""Fetches from the log of a partition: slices that are read into a reused buffer, and the same bytes read
with bare ``preadv`` from known positions of the same file.

The log is in the page cache and written by PartitionLog. Both sides read the same batches in each round, and
their bytes are compared.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.appending import NOW_MS, Batches
from bench.harness import Comparison, Contest, Side, Timing, timed
from bench.java import BUILD
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.model import TopicPartition
from txnkafka.storage.formats.layout import file_name
from txnkafka.storage.log.log_read import read
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Start, open_log

__all__ = ["contests"]

NOTE = (
    "fetch: one thread, page cache, read_committed; `slice` looks the offset up, takes a slice and reads it "
    "into a reused buffer, `preadv` reads the same bytes from a known position. Batches of one record."
)
GOAL_1_MIB = 1 / 1.1


@dataclass(frozen=True)
class Fetches:
    """``count`` fetches of at most ``max_bytes``, of a log of ``batches`` of ``records`` records of 100
    bytes: always of the last batch, or of each ``step``-th in turn."""

    name: str
    max_bytes: int
    records: int
    batches: int
    count: int
    step: int | None = None

    def offsets(self) -> list[int]:
        """First offsets of the batches that are fetched."""
        last = self.batches - 1
        if self.step is None:
            return [last * self.records] * self.count
        most = self.batches - self.max_bytes // (self.records * 100)
        return [i * self.step % most * self.records for i in range(self.count)]


class _FetchSide:
    """Common to both sides: the same log, which the first one writes, and a buffer."""

    output = "batches"

    def __init__(self, name: str, fetches: Fetches) -> None:
        self.name = name
        self._fetches = fetches
        self._directory = BUILD / "bench" / "fetched" / fetches.name.replace(" ", "-")
        self._buffer = memoryview(bytearray(fetches.max_bytes))
        self._offsets = fetches.offsets()

    def _written(self) -> PartitionLog:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True)
        partition = TopicPartition("bench", 0)
        log = open_log(
            LocalDataFiles(), str(self._directory), partition, LogConfig(), Start(), now_ms=NOW_MS
        ).log
        *before, last = Batches(self._fetches.records, self._fetches.batches).read()
        for batch in before:
            log.append(batch, now_ms=NOW_MS)
        log.flush()  # a consumer has fetched up to here, and gets the last batch next
        log.append(last, now_ms=NOW_MS)
        log.flush()
        return log

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


class SliceSide(_FetchSide):
    """Fetches by txnkafka."""

    def __init__(self, fetches: Fetches) -> None:
        super().__init__("slice", fetches)

    def warm(self) -> None:
        self._log = self._written()
        self.run()

    def run(self) -> Timing:
        log, buffer, max_bytes = self._log, self._buffer, self._fetches.max_bytes
        timing: list[tuple[float, float]] = []
        with timed(timing):
            for offset in self._offsets:
                records = read(log, offset, max_bytes=max_bytes).records
                records.read_into(buffer)
                records.release()
        return Timing(*timing[0], len(self._offsets))

    def digest(self) -> object:
        digest = hashlib.sha256()
        for offset in sorted(set(self._offsets)):
            with read(self._log, offset, max_bytes=self._fetches.max_bytes).records as records:
                digest.update(records.read())
        return digest.hexdigest()

    def close(self) -> None:
        self._log.local.close_files()
        super().close()


class PreadvSide(_FetchSide):
    """The bare system call, on a file opened before, at positions found by a plain walk."""

    def __init__(self, fetches: Fetches) -> None:
        super().__init__("preadv", fetches)

    def warm(self) -> None:
        path = Path(self._directory, file_name(0, "log"))
        positions, content, position = [], path.read_bytes(), 0
        while position < len(content):
            positions.append(position)
            position += int.from_bytes(content[position + 8 : position + 12], "big") + 12
        self._positions = [positions[offset // self._fetches.records] for offset in self._offsets]
        self._file = os.open(path, os.O_RDONLY)
        self.run()

    def run(self) -> Timing:
        file, buffer = self._file, self._buffer
        timing: list[tuple[float, float]] = []
        with timed(timing):
            for position in self._positions:
                os.preadv(file, [buffer], position)
        return Timing(*timing[0], len(self._positions))

    def digest(self) -> object:
        digest = hashlib.sha256()
        for position in sorted(set(self._positions)):
            digest.update(self._buffer[: os.preadv(self._file, [self._buffer], position)])
        return digest.hexdigest()

    def close(self) -> None:
        os.close(self._file)
        super().close()


def contests(rounds: int) -> list[Contest]:
    """Return the contests: the last batch of a log, and 64 KiB and 1 MiB from anywhere in it."""
    return [
        _contest(Fetches("the last batch", 1 << 20, 1, 20_000, 20_000), rounds, None),
        _contest(Fetches("64 KiB", 1 << 16, 1, 100_000, 4_000, step=997), rounds, None),
        _contest(Fetches("1 MiB", 1 << 20, 1, 100_000, 500, step=997), rounds, GOAL_1_MIB),
    ]


def _contest(fetches: Fetches, rounds: int, goal: float | None) -> Contest:
    def sides() -> Sequence[Side]:
        return [SliceSide(fetches), PreadvSide(fetches)]

    comparisons = [Comparison("slice", "preadv", goal)]
    name = f"fetch {fetches.name}"
    return Contest(name, "fetches", lambda: fetches.count, sides, comparisons, rounds, NOTE)
