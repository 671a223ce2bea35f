"""Loads the state of all producers at an offset of a log: the newest sound snapshot below it, then the later
batches.

Source: ``ProducerStateManager.truncateAndReload``, ``UnifiedLog.rebuildProducerState``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptFileError
from txnkafka.storage.log.log_segments import segment_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txnkafka.env import DataFiles
    from txnkafka.model import CompletedTxn
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.producer_snapshots import ProducerSnapshots

_NEVER = (1 << 63) - 1


class WithHistory(Protocol):
    """A log to load producers from: an open log, or one being loaded by recovery. ``loaded_ms`` is the time
    for the expiration of producers."""

    loaded_ms: int

    @property
    def files(self) -> DataFiles: ...
    @property
    def directory(self) -> str: ...
    @property
    def segments(self) -> Sequence[LogSegment]: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def snapshots(self) -> ProducerSnapshots: ...
    def note(self, what: str, action: str = "", why: str = "") -> None: ...


class Snapshot(NamedTuple):
    """The offset of the loaded snapshot (None without one), and the damaged snapshots with their faults."""

    offset: int | None
    damaged: list[tuple[int, str]]


def load_newest(
    table: ProducerTable, snapshots: ProducerSnapshots, offsets: Iterable[int], now_ms: int
) -> Snapshot:
    """Load the newest sound snapshot among those at ``offsets`` (ascending); without one, the table is empty.
    Changes no file. Raises OSError.

    No producer expires here: a producer idle at the time of the snapshot may have written since, and its
    batches in the log continue its state."""
    damaged: list[tuple[int, str]] = []
    for offset in reversed(list(offsets)):
        try:
            table.load(snapshots.read(offset), now_ms=now_ms, expiration_ms=_NEVER, end_offset=offset)
            return Snapshot(offset, damaged)
        except CorruptFileError as error:
            damaged.append((offset, error.reason))
    table.clear()
    return Snapshot(None, damaged)


def load_producers(log: WithHistory, table: ProducerTable, end_offset: int) -> int:
    """Load the newest sound snapshot at or below ``end_offset``; return its offset, or without one the base
    offset of the first segment. Damaged snapshots are removed. Raises OSError."""
    below = [offset for offset in log.snapshots.offsets if offset <= end_offset]
    loaded = load_newest(table, log.snapshots, below, log.loaded_ms)
    remove_damaged(log, loaded)
    return log.segments[0].base_offset if loaded.offset is None else loaded.offset


def remove_damaged(log: WithHistory, loaded: Snapshot) -> None:
    """Remove the damaged snapshots. Raises OSError."""
    for offset, reason in loaded.damaged:
        log.note(log.snapshots.path(offset), "removed", f"it is damaged, {reason}")
        log.snapshots.remove(offset)


def reload_state(log: WithHistory, producers: ProducerTable, high_watermark: int, expiration_ms: int) -> None:
    """Reload ``producers`` as of the log end, after a truncation, and write a snapshot there. Raises
    CorruptRecordError and OSError."""
    producers.clear()
    # no snapshot has transactions that ended above the high watermark, but their records are still hidden
    start = load_producers(log, producers, min(high_watermark, log.log_end_offset))
    replay(log.segments, producers, start, log.log_end_offset, [])
    producers.expire(log.loaded_ms, expiration_ms)
    if start != log.log_end_offset:
        log.snapshots.write(log.log_end_offset, producers.snapshot())
    producers.on_high_watermark(high_watermark)


def keep_state(log: WithHistory, offset: int) -> None:
    """Write a snapshot of the producers at ``offset`` unless one exists. It must be synced before the
    segments below it are deleted: no other file has that state. Raises CorruptRecordError and OSError."""
    snapshots = log.snapshots
    if offset not in snapshots.offsets:
        table = ProducerTable()
        replay(log.segments, table, load_producers(log, table, offset), offset, [])
        snapshots.write(offset, table.snapshot())


def replay(
    segments: Sequence[LogSegment],
    table: ProducerTable,
    start: int,
    end: int,
    completed: list[CompletedTxn],
) -> None:
    """Replay the batches in [start, end) into ``table``. Raises CorruptRecordError and OSError.

    Existing batches below the log start are also replayed: the log start moves without a change of the
    producers, and a snapshot from below it would lack the batches in between."""
    for segment in segments[segment_number(segments, start) :]:
        if segment.base_offset >= end:
            return
        place = segment.find(start) if segment.base_offset < start else (0, 0, 0)
        if place is None:
            continue
        for batches in segment.windows(place[0]):
            count = batches.find(end)
            if count < len(batches):
                batches.truncate(count, "end", "")
            table.replay(batches, start, completed)
