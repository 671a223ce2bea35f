"""Which transactions are open at the end of a log, and where that leaves the last stable offset.

The newest producer snapshot says which were open at its offset; headers behind it say what happened since.
Headers alone do as well when there is no snapshot. Only the snapshot knows an open transaction whose
records were deleted (DeleteRecords, retention): it holds the last stable offset at the log start. Source:
ProducerStateManager.firstUnstableOffset, UnifiedLog.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from txnkafka._core.read_committed import TransactionRange, TransactionScan
from txnkafka.logdir.header_pass import header_pass, segment_containing
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.formats.segment_reader import SegmentReader

__all__ = ["Undecided", "find_undecided"]

NEVER = (1 << 63) - 1


class Undecided(NamedTuple):
    """Open transactions, oldest first, and the offset from which on nothing is stable (the largest offset
    when none is open)."""

    open_transactions: list[TransactionRange]
    first_unstable_offset: int


def find_undecided(
    segments: list[SegmentReader],
    snapshot: tuple[int, Iterable[ProducerStateEntry]] | None,
    log_start_offset: int,
) -> Undecided:
    """Open transactions at the end of ``segments``."""
    snapshot_offset, entries = snapshot if snapshot is not None else (0, ())
    known = {entry.producer_id: entry for entry in entries if entry.has_open_transaction}
    start = max(
        log_start_offset,
        min((entry.current_txn_first_offset for entry in known.values()), default=snapshot_offset),
    )
    first = segment_containing(segments, start)
    if snapshot is None and segments:
        # a running broker remembers what it has deleted; as much of it as is still there is told by headers
        start = segments[first].base_offset
    scan = TransactionScan(start)
    for _ in header_pass(segments, first, scan):
        pass
    still_open = {
        producer_id: max(entry.current_txn_first_offset, log_start_offset)
        for producer_id, entry in known.items()
        if scan.markers.get(producer_id, -1) < snapshot_offset
    }
    found = [
        # its first records may be deleted: only the snapshot knows where it really began
        each._replace(first_offset=still_open.pop(each.producer_id, max(each.first_offset, log_start_offset)))
        for each in scan.open_transactions()
        if each.first_offset >= snapshot_offset or each.producer_id in known
    ]
    found += [_only_in_snapshot(known[producer_id], first) for producer_id, first in still_open.items()]
    found.sort(key=lambda each: each.first_offset)
    if not found:
        return Undecided([], NEVER)
    return Undecided(found, _first_unstable(segments, found[0].first_offset, log_start_offset))


def _only_in_snapshot(entry: ProducerStateEntry, first_offset: int) -> TransactionRange:
    return TransactionRange(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        first_offset=first_offset,
        last_offset=first_offset,
        first_timestamp=-1,
        last_timestamp=entry.last_timestamp,
        batches=0,
        records=0,
        bytes=0,
        outcome="open",
        last_data_offset=first_offset,
        marker_timestamp=-1,
        coordinator_epoch=-1,
    )


def _first_unstable(segments: list[SegmentReader], offset: int, log_start_offset: int) -> int:
    """At the log start the offset moves back to the base of the batch that contains it, as in Kafka."""
    if offset > log_start_offset or not segments:
        return offset
    for index in segments[segment_containing(segments, offset)].indexes():
        i = index.find(offset)
        if i < len(index):
            return min(index.base_offset[i], offset)
    return offset
