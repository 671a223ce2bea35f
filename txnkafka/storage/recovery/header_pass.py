"""Derives state from the headers of the segments that recovery checks: leader epochs, producers, snapshots at
the segments' bases, and transaction indexes. Everything is built in memory while the batches are checked, so
that they are read once; nothing is written before the log end is known.

Source: ``LogSegment.recover``, ``UnifiedLog.rebuildProducerState``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.storage.log.producer_history import Snapshot, load_newest, remove_damaged, replay
from txnkafka.storage.log.transactions import add_aborted
from txnkafka.storage.log.txn_index_file import TxnIndexFile

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex
    from txnkafka.model import CompletedTxn
    from txnkafka.storage.log.leader_epochs import LeaderEpochs
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.recovery.found_log import FoundLog

MOST_KEPT = 64 << 20  # bytes of unwritten snapshots in memory


class HeaderPass:
    """Follows the batches of a log's segments; producers are followed from segment ``first_rebuilt`` on.

    ``is_complete``: producers were followed to the log end. It is False if a segment was read twice because
    its batches are out of order, or if the snapshots need more than MOST_KEPT bytes; then ``rebuild`` reads
    the segments again."""

    def __init__(self, found: FoundLog, first_rebuilt: int) -> None:
        self.producers = ProducerTable()
        self.is_complete = False
        self._found = found
        self._first_rebuilt = found.segments[first_rebuilt] if first_rebuilt < len(found.segments) else None
        self._segment: LogSegment | None = None
        self._loaded = Snapshot(None, [])
        self._completed: list[CompletedTxn] = []
        self._snapshots: dict[LogSegment, bytes] = {}
        self._txn_indexes: dict[LogSegment, TxnIndexFile] = {}
        self._kept = 0

    def begin(self, segment: LogSegment) -> None:
        """Begin the next segment, or the same one again. Raises OSError, and CorruptRecordError if the log
        before it cannot be read."""
        if segment is self._first_rebuilt and segment is not self._segment:
            self.is_complete = True
            self._load(segment.base_offset)
        elif segment is self._segment:
            self._give_up()
        self._segment = segment
        if self.is_complete:
            self._snapshots[segment] = snapshot = self.producers.snapshot()
            self._kept += len(snapshot)
            if self._kept > MOST_KEPT:
                self._give_up()

    def take(self, batches: BatchIndex) -> None:
        """Follow the next batches of the segment, all sound."""
        assign_epochs(self._found.epochs, batches)
        if self.is_complete and self._segment is not None:
            self.producers.replay(batches, self._segment.base_offset, self._completed)

    def end(self) -> None:
        """End the segment. Raises CorruptRecordError if its markers are out of order."""
        if self.is_complete and self._segment is not None:
            self._txn_indexes[self._segment] = _txn_index(self._segment, self._completed)
            self._completed.clear()

    def _load(self, offset: int) -> None:
        """Load the state at ``offset``, the base of a segment. A snapshot at any other offset is a stray,
        removed later."""
        found = self._found
        bases = {segment.base_offset for segment in found.segments}
        offsets = [base for base in found.snapshots.offsets if base <= offset and base in bases]
        self._loaded = load_newest(self.producers, found.snapshots, offsets, found.loaded_ms)
        start = found.segments[0].base_offset if self._loaded.offset is None else self._loaded.offset
        if start < offset:
            replay(found.segments, self.producers, start, offset, [])

    def _give_up(self) -> None:
        self.is_complete = False
        self.producers.clear()
        for kept in (self._snapshots, self._txn_indexes, self._completed):
            kept.clear()

    def apply(self, rebuilt: list[LogSegment]) -> None:
        """Write the snapshots and transaction indexes of the segments that remain in the log. Raises
        OSError."""
        found = self._found
        remove_damaged(found, self._loaded)
        first = found.segments[0].base_offset
        found.snapshots.remove_above(first if self._loaded.offset is None else self._loaded.offset)
        for segment in rebuilt:
            if segment.base_offset != first:
                found.snapshots.write(segment.base_offset, self._snapshots[segment])
            _replace_txn_index(segment, self._txn_indexes[segment])

    def rebuild(self, rebuilt: list[LogSegment], loaded: int) -> None:
        """Like ``apply``, but reads the segments again; ``producers`` is the state at the base of the first
        segment, loaded from the snapshot at ``loaded``. Raises CorruptRecordError and OSError."""
        found = self._found
        found.snapshots.remove_above(loaded)  # left over from a crash
        for segment in rebuilt:
            if segment.base_offset != found.segments[0].base_offset:
                found.snapshots.write(segment.base_offset, self.producers.snapshot())
            completed: list[CompletedTxn] = []
            for batches in segment.windows():
                self.producers.replay(batches, segment.base_offset, completed)
            _replace_txn_index(segment, _txn_index(segment, completed))


def _txn_index(segment: LogSegment, completed: list[CompletedTxn]) -> TxnIndexFile:
    index = TxnIndexFile(segment.base_offset)
    add_aborted(segment, index, completed)
    return index


def _replace_txn_index(segment: LogSegment, index: TxnIndexFile) -> None:
    segment.txn_index = index
    if index.entries or segment.files.exists("txnindex"):
        index.replaces_file()


def assign_epochs(epochs: LeaderEpochs, batches: BatchIndex) -> None:
    """Add the leader epochs that begin in these batches."""
    newest = -1 if epochs.latest is None else epochs.latest
    if not len(batches) or max(batches.partition_leader_epoch) <= newest:
        return
    for epoch, base_offset in zip(batches.partition_leader_epoch, batches.base_offset, strict=True):
        if epoch > newest:
            epochs.assign(epoch, base_offset)
            newest = epoch
