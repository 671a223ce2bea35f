"""Duplicate detection and producer snapshots against Java's ProducerStateManager.

The input is headers of client batches, 61 bytes each: five of each producer that are never timed, then
batches of random producers in the order of their sequences, one of a hundred repeated. Both sides start each
round from the state behind the first part. Java is used as UnifiedLog does it, without anything around.
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

__all__ = ["contests"]

GOALS = {1: None, 1000: 30.0, 100_000: 40.0, 1_000_000: None}
SNAPSHOT_PRODUCERS = 100_000
KNOWN = 5
RECORDS = 10
DUPLICATE = 46  # the error code of a repeated batch
TIMESTAMP = 1_700_000_000_000
HEADER = np.dtype(
    [
        ("base_offset", ">i8"), ("length", ">i4"), ("leader_epoch", ">i4"), ("magic", "i1"), ("crc", ">u4"),
        ("attributes", ">i2"), ("last_offset_delta", ">i4"), ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"), ("producer_id", ">i8"), ("producer_epoch", ">i2"), ("sequence", ">i4"),
        ("count", ">i4"),
    ]
)  # fmt: skip
# Room for two states of a million producers: a round begins before the last one's is collected.
LARGE = ["-Xms6g", "-Xmx6g", "-Xmn3g"]
SMALL = ["-Xms1g", "-Xmx1g", "-Xmn512m"]


class Rounds(Protocol):
    """How many rounds a plan wants, and whether it is the full one."""

    @property
    def rounds(self) -> int: ...

    @property
    def spark_all(self) -> bool: ...


def contests(plan: Rounds) -> list[Contest]:
    """All of them; a million producers in full runs only, where Java needs minutes."""
    counts = [count for count in GOALS if count < 1_000_000 or plan.spark_all]
    found = [_detection(count, plan.rounds if count < 1_000_000 else 3) for count in counts]
    return [*found, _snapshot("write", plan.rounds), _snapshot("load", plan.rounds)]


def _detection(producers: int, rounds: int) -> Contest:
    def sides() -> Sequence[Side]:
        return [
            TableSide(producers),
            TableSide(producers, one_by_one=True),
            JavaProducersSide(producers, "append"),
        ]

    return Contest(
        f"duplicate detection, {producers:,} producers",
        "batches",
        lambda: len(batches(producers)),
        sides,
        [Comparison("table", "java", GOALS[producers]), Comparison("table one by one", "java")],
        rounds,
        "Duplicate detection: `table` checks and takes in the batches of a buffer in one call, `one by one` "
        "calls check and append from Python for each; Java gets each batch as records of its own, which is "
        "how clients' batches reach it. Memory is that of the producers, five batches known of each.",
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
    """Five batches of each producer."""
    number = np.arange(producers * KNOWN)
    return _headers(number % producers, number // producers * RECORDS, number * RECORDS)


@cache
def batches(producers: int) -> Any:
    """Batches of random producers; a repeated one has the sequences of the one before it."""
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
    """The compiled table; all batches in one call, or one by one from Python."""

    output = "state"

    def __init__(self, producers: int, *, one_by_one: bool = False) -> None:
        self.name = "table one by one" if one_by_one else "table"
        self._append = self._append_each if one_by_one else self._append_all
        self._before, self._batches = before(producers).tobytes(), batches(producers).tobytes()
        self._table = ProducerTable()
        self._duplicates = 0

    def warm(self) -> None:
        self.run()

    def run(self) -> Timing:
        self._table = ProducerTable()
        self._table.check_and_append_all(self._before, origin=CLIENT)
        timing: list[tuple[float, float]] = []
        with timed(timing):
            codes = self._append(self._table, self._batches)
        assert set(np.unique(codes)) <= {0, DUPLICATE}
        self._duplicates = int(np.count_nonzero(codes))
        size = self._table.__sizeof__()
        return Timing(*timing[0], len(self._batches) // HEADER.itemsize, size)

    @staticmethod
    def _append_all(table: ProducerTable, content: bytes) -> Any:
        return np.asarray(table.check_and_append_all(content, origin=CLIENT))

    @staticmethod
    def _append_each(table: ProducerTable, content: bytes) -> Any:
        codes = bytearray()
        for position in range(0, len(content), HEADER.itemsize):
            checked = table.check(content, position, origin=CLIENT)
            codes.append(DUPLICATE if checked.is_duplicate else checked.code)
            if not codes[-1]:
                table.append(content, position)
        return np.frombuffer(codes, np.int8)

    def digest(self) -> object:
        entries = self._table.entries()
        return {
            "appended": len(self._batches) // HEADER.itemsize - self._duplicates,
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
        self._table.check_and_append_all(before(SNAPSHOT_PRODUCERS).tobytes(), origin=CLIENT)
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
    """The same with ProducerStateManager."""

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
