"""Compares the files beside a partition's log on the disk with that log: indexes, transaction indexes,
snapshots.

Recovery rebuilds them above the recovery point. Below it, and everywhere after a clean stop, this package and
Kafka trust them, so there they must be correct on the disk.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from tests.crash.entries import Entry, Transaction, as_log, transactions
from tests.crash.explore import Promises
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.env import DataFiles
from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.layout import file_name, parse_segment_file

__all__ = ["check_beside_log", "check_damaged_snapshots", "check_snapshots"]

OFFSET_ENTRY, TIME_ENTRY, ABORTED_ENTRY = struct.Struct(">ii"), struct.Struct(">qi"), struct.Struct(">hqqqq")
LIMIT = 1 << 20
NEVER = 1 << 62
INDEX_INTERVAL_BYTES = 100  # in all workloads


def check_beside_log(
    files: DataFiles, directory: str, *, recovery_point: int | None, history: Sequence[Entry] | None
) -> None:
    """Compare the files of each segment below ``recovery_point`` with its log; None after a clean stop: those
    of all segments. ``history`` has all entries ever appended to this log and not truncated, if they are
    known: then the aborted transactions are compared, too. Raises AssertionError."""
    names = {entry.name for entry in files.list(directory) if not entry.is_directory}
    parsed = [each for name in names if (each := parse_segment_file(name)) and not each.suffix]
    bases = sorted(each.base_offset for each in parsed if each.kind == "log")
    for base, end in pairwise([*bases, None]):
        if recovery_point is None or (end is not None and end <= recovery_point):
            _Segment(files, directory, base).check(history, is_last=end is None)


class _Segment:
    """The files of one segment on the disk."""

    def __init__(self, files: DataFiles, directory: str, base: int) -> None:
        self._base = base
        self._path = files.join(directory, file_name(base, "log"))
        self._content = {
            kind: files.read(path, LIMIT) if files.exists(path) else None
            for kind in ("log", "index", "timeindex", "txnindex")
            for path in [files.join(directory, file_name(base, kind))]
        }

    def check(self, history: Sequence[Entry] | None, *, is_last: bool) -> None:
        log = self._content["log"]
        assert log is not None
        batches = scan(log)
        size = sum(batches.size)
        assert size == len(log), f"{len(log) - size} bytes behind the last batch of {self._path}"
        if size or not is_last:
            self._check_offset_index(batches, size)
            self._check_time_index(batches)
        if history is not None:
            self._check_aborted(batches, history)

    def _entries(self, kind: str, entry: struct.Struct) -> list[tuple[int, ...]]:
        content = self._content[kind]
        assert content is not None, f"{self._path}: the .{kind} is missing"
        assert len(content) % entry.size == 0, f"{self._path}: the .{kind} ends in an entry"
        return list(entry.iter_unpack(content))

    def _check_offset_index(self, batches: BatchIndex, size: int) -> None:
        """Entries point to batches, and no long part of the log is without an entry. A restart or a
        truncation restarts the interval, so the distance may be longer than one interval."""
        ends = dict(zip(batches.position, batches.last_offset, strict=True))
        entries = self._entries("index", OFFSET_ENTRY)
        for offset, position in entries:
            assert ends.get(position) == self._base + offset, (
                f"{self._path}: the .index has {offset, position}"
            )
        positions = [0, *(position for _, position in entries), size]
        assert positions == sorted(positions), f"{self._path}: the .index is not in order"
        longest = 3 * (INDEX_INTERVAL_BYTES + max(batches.size, default=0))
        assert all(b - a <= longest for a, b in pairwise(positions)), (
            f"{self._path}: the .index lacks entries"
        )

    def _check_time_index(self, batches: BatchIndex) -> None:
        newest = {}
        latest = -1
        for last_offset, timestamp in zip(batches.last_offset, batches.max_timestamp, strict=True):
            latest = max(latest, timestamp)
            newest[last_offset - self._base] = latest
        entries = self._entries("timeindex", TIME_ENTRY)
        for timestamp, offset in entries:
            assert newest.get(offset) == timestamp, f"{self._path}: the .timeindex has {timestamp, offset}"
        found = entries[-1][0] if entries else -1
        assert found == latest, f"{self._path}: the .timeindex ends with {found}, the log with {latest}"

    def _check_aborted(self, batches: BatchIndex, history: Sequence[Entry]) -> None:
        """Each transaction that is aborted by a marker of this segment has an entry, and there are no others.
        The first offset may differ, or the entry be missing, when data of the transaction was deleted."""
        content = self._content["txnindex"] or b""
        assert len(content) % ABORTED_ENTRY.size == 0, f"{self._path}: the .txnindex ends in an entry"
        found = {entry[3]: entry[1:] for entry in ABORTED_ENTRY.iter_unpack(content)}
        here = set(batches.last_offset)
        wanted = {each.last_offset: each for each in transactions(history)[0] if each.last_offset in here}
        assert found.keys() <= wanted.keys(), f"{self._path}: the .txnindex has {found}"
        for offset, each in wanted.items():
            _check_aborted(found.get(offset), each, self._path)


def _check_aborted(found: tuple[int, ...] | None, wanted: Transaction, path: str) -> None:
    expected = (
        wanted.producer_id,
        wanted.data[0].first_offset,
        wanted.last_offset,
        wanted.last_stable_offset,
    )
    assert found == expected, f"{path}: the .txnindex has {found} for {expected}"


def check_damaged_snapshots(files: DataFiles, directory: str, promises: Promises) -> None:
    """Check that every damaged snapshot was unsynced at the power cut. Raises AssertionError."""
    for entry in files.list(directory):
        parsed = parse_segment_file(entry.name)
        if parsed is None or parsed.kind != "snapshot" or parsed.suffix:
            continue
        path = files.join(directory, entry.name)
        assert path in promises.unsynced or _loaded(files.read(path, LIMIT), 0) is not None, (
            f"{path} is damaged"
        )


def _loaded(content: bytes, now_ms: int) -> ProducerTable | None:
    """Load a snapshot; None when it is damaged."""
    table = ProducerTable()
    with suppress(CorruptFileError):
        table.load(content, now_ms=now_ms, expiration_ms=NEVER)
        return table
    return None


def check_snapshots(
    files: DataFiles, directory: str, promises: Promises, history: Sequence[Entry], now_ms: int
) -> None:
    """Each snapshot equals the state of the log below it, including deleted entries; a damaged one was not
    durable. Raises AssertionError."""
    end = history[-1].last_offset + 1 if history else 0
    for entry in files.list(directory):
        parsed = parse_segment_file(entry.name)
        if parsed is None or parsed.kind != "snapshot" or parsed.suffix:
            continue
        assert parsed.base_offset <= end, f"a snapshot at {parsed.base_offset}, above the log end {end}"
        path = files.join(directory, entry.name)
        found = _loaded(files.read(path, LIMIT), now_ms)
        if found is None:
            assert path in promises.unsynced, f"{path} was durable, and is damaged"
        else:
            assert found.snapshot() == _state(history, parsed.base_offset), f"{path} differs from the log"


def _state(history: Sequence[Entry], offset: int) -> bytes:
    table = ProducerTable()
    table.replay(scan(as_log(each for each in history if each.last_offset < offset)), 0, [])
    return table.snapshot()
