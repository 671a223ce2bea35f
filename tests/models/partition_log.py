"""The log of a partition, slow and obvious: a list of batches, from which everything else is derived.

Only truncated batches are removed from the list: those that retention deletes are below ``log_start``, but
still count for the state of producers. ``durable`` is the end of the durable data, ``high_watermark`` the
offset where readers stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

__all__ = ["Aborted", "Batch", "Entry", "PartitionLogModel", "after"]

LARGEST_SEQUENCE, LARGEST_EPOCH = 2**31 - 1, 32767
WINDOW = 5


class Batch(NamedTuple):
    """One batch; a marker has ``commit``, and one value that readers do not get."""

    values: tuple[bytes, ...]
    timestamp: int
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    transactional: bool = False
    commit: bool | None = None
    coordinator_epoch: int = -1
    base_offset: int = -1
    leader_epoch: int = 0

    @property
    def last_offset(self) -> int:
        return self.base_offset + len(self.values) - 1

    @property
    def last_sequence(self) -> int:
        return after(self.sequence, len(self.values) - 1)


class Aborted(NamedTuple):
    """An entry of a transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Transaction(NamedTuple):
    """A completed transaction."""

    entry: Aborted
    commit: bool


@dataclass
class Entry:
    """A producer. ``batches`` are all of its epoch; the last five of them are recognised as duplicates."""

    epoch: int
    batches: list[Batch] = field(default_factory=list)
    coordinator_epoch: int = -1
    timestamp: int = -1
    first_offset: int = -1

    def row(self, producer_id: int) -> tuple[int, ...]:
        """Return the fields of DescribeProducers and snapshots."""
        newest = (-1, -1, 0)
        if self.batches:
            last = self.batches[-1]
            newest = last.last_sequence, last.last_offset, len(last.values) - 1
        return (
            producer_id, self.epoch, self.coordinator_epoch, self.timestamp, self.first_offset, *newest
        )  # fmt: skip


def after(sequence: int, count: int) -> int:
    """Return the sequence ``count`` after another one."""
    return (sequence + count) % (LARGEST_SEQUENCE + 1)


class PartitionLogModel:
    """A log and its clock."""

    def __init__(self, expiration_ms: int, now_ms: int) -> None:
        self.batches: list[Batch] = []
        self.log_start = self.log_end = self.high_watermark = self.durable = 0
        self.expiration_ms, self.now_ms = expiration_ms, now_ms

    # Changes

    def append(self, batch: Batch) -> Batch:
        batch = batch._replace(base_offset=self.log_end)
        self.batches.append(batch)
        self.log_end = batch.last_offset + 1
        return batch

    def flush(self) -> None:
        self.high_watermark = self.durable = self.log_end

    def truncate(self, offset: int) -> None:
        """Truncate at the end of a batch."""
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        self.log_end = self.durable = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.log_start = min(self.log_start, offset)

    def end_below(self, offset: int) -> int | None:
        """Return the end of the last batch that is completely below ``offset``."""
        return max((b.last_offset + 1 for b in self.batches if b.last_offset < offset), default=None)

    # Producers

    def replay(self, end: int) -> tuple[dict[int, Entry], list[Transaction]]:
        """Return all producers, expired or not, and all transactions that ended below ``end``."""
        entries: dict[int, Entry] = {}
        ended: list[Transaction] = []
        for batch in self.batches:
            if batch.base_offset >= end or batch.producer_id < 0:
                continue
            entry = entries.setdefault(batch.producer_id, Entry(batch.epoch))
            if batch.commit is not None and entry.first_offset >= 0:
                others = [each.first_offset for each in entries.values() if each.first_offset >= 0]
                others.remove(entry.first_offset)
                stable = min([*others, batch.last_offset + 1])
                aborted = Aborted(batch.producer_id, entry.first_offset, batch.last_offset, stable)
                ended.append(Transaction(aborted, batch.commit))
            if batch.epoch != entry.epoch:
                entry.epoch, entry.batches = batch.epoch, []
            entry.timestamp = batch.timestamp
            if batch.commit is not None:
                entry.first_offset, entry.coordinator_epoch = -1, batch.coordinator_epoch
                continue
            entry.batches.append(batch)
            if batch.transactional and entry.first_offset < 0:
                entry.first_offset = batch.base_offset
        return entries, ended

    def producers(self, end: int | None = None) -> dict[int, Entry]:
        """Return the producers that are not expired now, in their state at ``end``."""
        entries, _ = self.replay(self.log_end if end is None else end)
        return {
            producer_id: entry
            for producer_id, entry in entries.items()
            if entry.first_offset >= 0 or self.now_ms - entry.timestamp < self.expiration_ms
        }

    def rows(self, end: int | None = None) -> list[tuple[int, ...]]:
        return [entry.row(producer_id) for producer_id, entry in sorted(self.producers(end).items())]

    def judge(self, batch: Batch, transaction_version: int) -> Batch | int:
        """Return the batch that this one duplicates, or Kafka's error code; 0 when it can be appended."""
        entry = self.producers().get(batch.producer_id)
        if batch.producer_id < 0:
            return 0
        if batch.commit is not None:
            return self._judge_marker(batch, entry, transaction_version)
        if entry is None:
            begins_at_0 = self.log_end == 0 or (batch.transactional and transaction_version == 2)
            return 45 if begins_at_0 and batch.sequence else 0
        for known in entry.batches[-WINDOW:]:
            if (known.sequence, known.last_sequence, known.epoch) == (
                batch.sequence, batch.last_sequence, batch.epoch,
            ) and (not batch.transactional or 0 <= entry.first_offset <= known.base_offset):  # fmt: skip
                return known
        if batch.epoch < entry.epoch:
            return 47
        begins = batch.transactional and (entry.first_offset < 0 or entry.epoch != batch.epoch)
        if begins and transaction_version == 2 and batch.sequence and not entry.batches:
            return 45
        following = after(entry.batches[-1].last_sequence, 1) if entry.batches else 0
        if batch.sequence != (following if batch.epoch == entry.epoch else 0):
            return 45
        return 48 if entry.first_offset >= 0 and not batch.transactional else 0

    def _judge_marker(self, batch: Batch, entry: Entry | None, transaction_version: int) -> int:
        if entry is None:
            return 0
        again = batch.epoch == entry.epoch and entry.first_offset >= 0 and entry.epoch != LARGEST_EPOCH
        if batch.epoch < entry.epoch or (transaction_version == 2 and again):
            return 47
        return 52 if batch.coordinator_epoch < entry.coordinator_epoch else 0

    # Reads

    @property
    def last_stable_offset(self) -> int:
        entries, ended = self.replay(self.log_end)
        unstable = [entry.first_offset for entry in entries.values() if entry.first_offset >= 0]
        unstable += [e.entry.first_offset for e in ended if e.entry.last_offset >= self.high_watermark]
        first = min(unstable, default=self.high_watermark)
        if first < self.log_start and first < self.high_watermark:
            holds = [batch.base_offset for batch in self.batches if batch.last_offset >= self.log_start]
            first = min([*holds[:1], self.log_start])
        return min(first, self.high_watermark)

    def aborted(self, begin: int, end: int) -> list[Aborted]:
        """Return the aborted transactions that overlap [begin, end), in the order of their markers."""
        _, ended = self.replay(self.log_end)
        found = [transaction.entry for transaction in ended if not transaction.commit]
        return [each for each in found if each.last_offset >= begin and each.first_offset < end]

    def markers_of(self, begin: int, end: int) -> list[Aborted]:
        """Return the transaction index entries of a segment with the offsets [begin, end)."""
        return [each for each in self.aborted(begin, end) if begin <= each.last_offset < end]

    def records(self, *, committed: bool) -> list[tuple[int, bytes]]:
        return list(self._records(self.last_stable_offset if committed else self.high_watermark, committed))

    def _records(self, end: int, committed: bool) -> Iterator[tuple[int, bytes]]:
        aborted = self.aborted(0, end) if committed else []
        for batch in self.batches:
            hidden = batch.transactional and any(
                each.producer_id == batch.producer_id
                and each.first_offset <= batch.base_offset < each.last_offset
                for each in aborted
            )
            if batch.commit is None and not hidden and batch.last_offset < end:
                for offset, value in enumerate(batch.values, start=batch.base_offset):
                    if offset >= self.log_start:
                        yield offset, value

    def epochs(self) -> list[tuple[int, int]]:
        """Return the leader epochs with their start offsets, none below the log start."""
        found: list[tuple[int, int]] = []
        for batch in self.batches:
            if not found or batch.leader_epoch > found[-1][0]:
                found.append((batch.leader_epoch, batch.base_offset))
        older = [epoch for epoch, start in found if start <= self.log_start]
        kept = [(epoch, start) for epoch, start in found if start > self.log_start]
        if older and self.log_start < self.log_end:
            kept.insert(0, (older[-1], self.log_start))
        return kept

    # Retention

    def deleted(self, bases: list[int], sizes: list[int], retention_bytes: int, retention_ms: int) -> int:
        """Return how many segments retention deletes, given their base offsets and sizes: the longest prefix
        of deletable segments that all exceed the same limit."""
        ends = [*bases[1:], self.log_end]
        numbers = range(len(bases))
        deletable = [ends[n] <= self.high_watermark and (n < len(bases) - 1 or sizes[n] > 0) for n in numbers]
        times = [[b.timestamp for b in self.batches if bases[n] <= b.base_offset < ends[n]] for n in numbers]
        rules = [
            [ends[n] <= self.log_start and n < len(bases) - 1 for n in numbers],
            [0 <= retention_bytes <= sum(sizes[n + 1 :]) for n in numbers],
            [0 <= retention_ms < self.now_ms - max(times[n], default=self.now_ms) for n in numbers],
        ]
        return max(sum(1 for _ in takewhile(all, zip(deletable, rule, strict=True))) for rule in rules)
