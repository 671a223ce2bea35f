"""The leader epochs of a log with their start offsets, as stored in ``leader-epoch-checkpoint``.

Source: ``LeaderEpochFileCache``, ``LeaderEpochCheckpointFile``; KIP-101, KIP-279.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from txnkafka.model import NO_PARTITION_LEADER_EPOCH
from txnkafka.storage.formats.checkpoint import EpochEntry


class LeaderEpochs:
    """Entries whose epochs and start offsets both increase."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self.entries = list(entries)

    @property
    def latest(self) -> int | None:
        """The newest epoch, None without any."""
        return self.entries[-1].epoch if self.entries else None

    def epoch_of(self, offset: int) -> int:
        """Return the epoch in which the record at ``offset`` was appended; -1 if unknown."""
        began = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[began - 1].epoch if began else NO_PARTITION_LEADER_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that ``epoch`` begins at ``start_offset``, unless the epoch is known; return True after a
        change. Contradicting entries are removed, as in ``LeaderEpochFileCache.assign``."""
        if epoch < 0 or (self.entries and epoch == self.entries[-1].epoch):
            return False
        while self.entries and (
            self.entries[-1].epoch >= epoch or self.entries[-1].start_offset >= start_offset
        ):
            self.entries.pop()
        self.entries.append(EpochEntry(epoch, start_offset))
        return True

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove the epochs that begin at or after ``end_offset``; return True after a change."""
        count = len(self.entries)
        self.entries = [entry for entry in self.entries if entry.start_offset < end_offset]
        return len(self.entries) != count

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove the epochs that end at or before ``start_offset``; the epoch that contains this offset then
        begins there. Return True after a change."""
        older = [entry for entry in self.entries if entry.start_offset <= start_offset]
        if not older or (len(older) == 1 and older[0].start_offset == start_offset):
            return False
        self.entries[: len(older)] = [EpochEntry(older[-1].epoch, start_offset)]
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
        """Return the largest epoch at or below ``epoch`` and its end offset; None if none is known."""
        if self.entries and epoch == self.entries[-1].epoch:
            return epoch, log_end_offset
        older = [entry for entry in self.entries if entry.epoch <= epoch]
        if not older or len(older) == len(self.entries):
            return None
        return older[-1].epoch, self.entries[len(older)].start_offset
