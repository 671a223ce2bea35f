"""Duplicate detection and producer snapshots, compared with Java's ProducerStateManager.

The input is headers of client batches, 61 bytes each: five of each producer that are never timed, then
batches of random producers in the order of their sequences, one of a hundred repeated. Both sides start each
round from the state after the first part. Java is called as UnifiedLog calls it, without the code around.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.harness import Comparison, Contest, Side, Timing, timed
from bench.java import BUILD, JavaProcess
from txnkafka._core.producer_table import CLIENT, ProducerTable
from txnkafka._core.scan import scan
from txnkafka._core.validate import read_batch

__all__ = ["contests"]

COUNTS = (1, 1000, 100_000, 1_000_000)
SNAPSHOT_PRODUCERS = 100_000
KNOWN = 5
RECORDS = 10
TIMESTAMP = 1_700_000_000_000
HEADER = np.dtype(
    [
        ("base_offset", ">i8"), ("length", ">i4"), ("leader_epoch", ">i4"), ("magic", "i1"), ("crc", ">u4"),
        ("attributes", ">i2"), ("last_offset_delta", ">i4"), ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"), ("producer_id", ">i8"), ("producer_epoch", ">i2"), ("sequence", ">i4"),
        ("count", ">i4"),
    ]
)  # fmt: skip
# Room for two states of a million producers: a round begins before the previous state is collected.
LARGE = ["-Xms6g", "-Xmx6g", "-Xmn3g"]
SMALL = ["-Xms1g", "-Xmx1g", "-Xmn512m"]


class Rounds(Protocol):
    """The number of rounds of a plan, and whether it is the full one."""

    @property
    def rounds(self) -> int: ...

    @property
    def spark_all(self) -> bool: ...


def contests(plan: Rounds) -> list[Contest]:
    """Return all contests; a million producers only in full runs, where Java needs minutes."""
    counts = [count for count in COUNTS if count < 1_000_000 or plan.spark_all]
    found = [_detection(count, plan.rounds if count < 1_000_000 else 3) for count in counts]
    return [*found, _snapshot("write", plan.rounds), _snapshot("load", plan.rounds)]


def _detection(producers: int, rounds: int) -> Contest:
    def sides() -> Sequence[Side]:
        return [TableSide(producers), JavaProducersSide(producers, "append")]

    return Contest(
        f"duplicate detection, {producers:,} producers",
        "batches",
        lambda: len(batches(producers)),
        sides,
        [Comparison("table", "java", 2.0 if producers in (1_000, 100_000) else None)],
        rounds,
        "Duplicate detection: its cost in an append, `read_batch`, `check` and `append` called from Python "
        "for each batch, one after the other; Java gets each batch as separate records, like the batches of "
        "clients. Memory is that of the producers, each with five known batches.",
    )


def _snapshot(what: str, rounds: int) -> Contest:
    def sides() -> Sequence[Side]:
        return [SnapshotSide(what), JavaProducersSide(SNAPSHOT_PRODUCERS, what)]

    return Contest(
        f"snapshot {what}, {SNAPSHOT_PRODUCERS:,} producers",
        "producers",
        lambda: SNAPSHOT_PRODUCERS,
        sides,
        [Comparison("table", "java")],
        rounds,
        "Snapshots: from the state in memory to a file and back, without fsync.",
    )


@cache
def before(producers: int) -> Any:
    """Encode five batches of each producer."""
    number = np.arange(producers * KNOWN)
    return _headers(number % producers, number // producers * RECORDS, number * RECORDS)


@cache
def batches(producers: int) -> Any:
    """Encode batches of random producers; a repeated one has the sequences of the previous one."""
    number = np.arange(max(400_000, producers))
    random = np.random.default_rng(producers)
    owner = random.integers(0, producers, len(number))
    repeats = random.random(len(number)) < 0.01
    order = np.argsort(owner, kind="stable")
    steps = np.where(repeats[order], 0, 1)
    total = np.cumsum(steps)
    first = np.searchsorted(owner[order], np.arange(producers))
    sequence = np.empty(len(number), np.int64)
    sequence[order] = total - (total - steps)[np.minimum(first, len(number) - 1)][owner[order]]
    offset = (producers * KNOWN + np.arange(len(number))) * RECORDS
    return _headers(owner, (KNOWN - 1 + sequence) * RECORDS, offset)


def _headers(producer_id: Any, sequence: Any, base_offset: Any) -> Any:
    headers = np.zeros(len(producer_id), HEADER)
    headers["length"], headers["magic"] = HEADER.itemsize - 12, 2
    headers["last_offset_delta"], headers["count"] = RECORDS - 1, RECORDS
    headers["base_timestamp"] = headers["max_timestamp"] = TIMESTAMP
    headers["producer_id"], headers["sequence"], headers["base_offset"] = producer_id, sequence, base_offset
    return headers


def _file(name: str, headers: Any) -> Path:
    path = BUILD / "bench" / f"producers-{name}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    headers.tofile(path)
    return path


class TableSide:
    """The compiled table, called from Python for each batch as an append does."""

    name, output = "table", "state"

    def __init__(self, producers: int) -> None:
        self._before, content = scan(before(producers).tobytes()), batches(producers).tobytes()
        size = HEADER.itemsize
        self._batches = [bytearray(content[i : i + size]) for i in range(0, len(content), size)]
        self._table = ProducerTable()
        self._duplicates = 0

    def warm(self) -> None:
        self.run()

    def run(self) -> Timing:
        self._table = ProducerTable()
        self._table.replay(self._before, 0, [])
        timing: list[tuple[float, float]] = []
        with timed(timing):
            self._duplicates = self._append_each()
        return Timing(*timing[0], len(self._batches), self._table.__sizeof__())

    def _append_each(self) -> int:
        """Check each batch, and append it unless it is a duplicate; returns the number of duplicates."""
        check, append, duplicates = self._table.check, self._table.append, 0
        for content in self._batches:
            batch = read_batch(content)
            checked = check(batch, CLIENT)
            if checked.is_duplicate:
                duplicates += 1
            else:
                assert not checked.code
                append(batch)
        return duplicates

    def digest(self) -> object:
        entries = self._table.entries()
        return {
            "appended": len(self._batches) - self._duplicates,
            "duplicates": self._duplicates,
            "sequences": sum(entry.last_sequence for entry in entries),
            "offsets": sum(entry.last_offset for entry in entries),
        }

    def close(self) -> None:
        self._table.clear()


class SnapshotSide:
    """Snapshot files of the compiled table."""

    name, output = "table", "snapshot"

    def __init__(self, what: str) -> None:
        self._run = {"write": self._write, "load": self._load}[what]
        self._path = BUILD / "bench" / "table.snapshot"
        self._table = ProducerTable()

    def warm(self) -> None:
        self._table.replay(scan(before(SNAPSHOT_PRODUCERS).tobytes()), 0, [])
        self._write()

    def run(self) -> Timing:
        timing: list[tuple[float, float]] = []
        with timed(timing):
            count = self._run()
        return Timing(*timing[0], count)

    def _write(self) -> int:
        self._path.write_bytes(self._table.snapshot())
        return len(self._table)

    def _load(self) -> int:
        table = ProducerTable()
        table.load(self._path.read_bytes(), now_ms=0, expiration_ms=1)
        return len(table)

    def digest(self) -> object:
        return None

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class JavaProducersSide:
    """Snapshot files of Kafka's ProducerStateManager."""

    name = "java"

    def __init__(self, producers: int, command: str) -> None:
        self.output = "state" if command == "append" else "snapshot"
        self._command = command
        self._files = [_file("before", before(producers)), _file("batches", batches(producers))]
        self._process = JavaProcess(LARGE if producers >= 1_000_000 else SMALL)
        self._bytes = 0

    def _ask(self, what: str) -> dict[str, Any]:
        return self._process.ask("ask-producers", **{"for": what})

    def warm(self) -> None:
        self._process.ask("producers", before=self._files[0], batches=self._files[1])
        for _ in range(2):
            self._ask("append")
        if self._command == "append":
            self._bytes = self._ask("state")["bytes"]
            return
        for _ in range(5):
            self._ask("write")
        if self._command == "load":
            for _ in range(5):
                self._ask("load")

    def run(self) -> Timing:
        answer = self._ask(self._command)
        units = answer["batches" if self._command == "append" else "producers"]
        return Timing(answer["cpu_ns"] / 1e9, answer["wall_ns"] / 1e9, units, self._bytes)

    def digest(self) -> object:
        if self._command != "append":
            return None
        answer = self._ask("state")
        return {name: answer[name] for name in ("appended", "duplicates", "sequences", "offsets")}

    def close(self) -> None:
        self._process.close()
        for file in self._files:
            file.unlink(missing_ok=True)
