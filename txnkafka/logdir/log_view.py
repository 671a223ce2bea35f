"""The read-only view of one partition's log: its start and end, its transactions, its producers.

All results follow from the ``.log`` files. A producer snapshot only saves the pass from the log's beginning
for the last stable offset, and a ``.txnindex`` is compared with the markers in the log; if they are missing
or damaged, the results are the same. ``PartitionView`` adds reading, display and explanation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.read_committed import TransactionRange
from txnkafka.config import LogConfig
from txnkafka.logdir.display import Transactions
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_point import HeaderPoint
from txnkafka.logdir.log_end import LogEnd, end_of_log
from txnkafka.logdir.noted_offsets import beyond_log_end
from txnkafka.logdir.partition_files import PartitionFiles, list_partition
from txnkafka.logdir.partition_source import PartitionSource
from txnkafka.logdir.plan_checkpoint import PlanCheckpoint
from txnkafka.logdir.read_request import check_end_offset
from txnkafka.logdir.snapshot_files import SnapshotFiles
from txnkafka.logdir.survey import transactions_between
from txnkafka.logdir.undecided import Undecided, find_undecided
from txnkafka.model import CompletedTxn, ProducerStateEntry, TopicPartition, check_integers
from txnkafka.storage.formats.segment_reader import SegmentReader


class LogView:
    """A view of a partition's log at the time of its first use.

    Offsets have Kafka's meaning: ``log_start_offset`` is inclusive; ``log_end_offset``, ``high_watermark``
    and ``last_stable_offset`` are exclusive."""

    def __init__(self, source: PartitionSource, checkpoint: PlanCheckpoint | None = None) -> None:
        """``checkpoint`` is the end of an earlier plan of the partition; this view continues there."""
        self.source = source
        self._checkpoint = checkpoint
        self.topic, self.partition = source.topic_partition
        self.topic_id = source.topic_id

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and partition."""
        return self.source.topic_partition

    @property
    def path(self) -> str:
        """The partition directory."""
        return self.source.path

    @cached_property
    def files(self) -> PartitionFiles:
        """The files in the directory."""
        found = list_partition(self.source.file_system, self.source.path, self.source.only_base_offset)
        for segment in found.segments:
            segment.follows_cleaned = segment.base_offset <= self.source.cleaned_to
        return found

    @cached_property
    def _log_end(self) -> LogEnd:
        source = self.source
        for segment in self.files.segments:
            segment.mapped = source.mapped and not source.being_written
        if self._checkpoint is not None:
            self._checkpoint.check(self.files.segments, source.log_start_offset)
        found = end_of_log(
            self.files.segments,
            clean_shutdown=source.clean_shutdown,
            recovery_point=source.recovery_point,
            being_written=source.being_written,
            known=None if self._checkpoint is None else self._checkpoint.known_end,
        )
        if self._checkpoint is not None:
            self._checkpoint.check_end(max(found.log_end_offset, source.log_start_offset or 0))
        return found

    @property
    def segments(self) -> list[SegmentReader]:
        """The segments of the log, in offset order."""
        return self._log_end.segments

    @property
    def findings(self) -> list[Finding]:
        """Findings about bytes left out at the end of the log, and about a log that ends below offsets noted
        by its broker."""
        found = self._log_end
        return [*found.findings, *beyond_log_end(self.source, found.log_end_offset)]

    @property
    def log_start_offset(self) -> int:
        """The first readable offset."""
        first = self.segments[0].base_offset if self.segments else 0
        return max(first, self.source.log_start_offset or 0)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record to be appended."""
        return max(self._log_end.log_end_offset, self.log_start_offset)

    @property
    def high_watermark(self) -> int | None:
        """The high watermark in the broker's checkpoint (written every 5 s and on shutdown), or None."""
        if self.source.high_watermark is None:
            return None
        return max(self.log_start_offset, min(self.source.high_watermark, self.log_end_offset))

    @cached_property
    def _undecided(self) -> Undecided:
        table = ProducerTable()
        offset = self._snapshots.load_newest(table)
        snapshot = None if offset is None else (offset, table.open_transactions())
        seen = None if self._checkpoint is None else self._checkpoint.seen
        return find_undecided(self.segments, snapshot, self.log_start_offset, seen)

    @property
    def last_stable_offset(self) -> int:
        """The offset where a read_committed reader stops: the first offset of the oldest open transaction,
        else the log end.

        The files do not have the exact high watermark; like a broker that starts alone on this directory, the
        view treats the whole log as replicated."""
        return min(self._undecided.first_unstable_offset, self.log_end_offset)

    @property
    def open_transactions(self) -> list[TransactionRange]:
        """Transactions without an end marker, oldest first. A transaction known only from a snapshot has no
        records."""
        return self._undecided.open_transactions

    @property
    def _snapshots(self) -> SnapshotFiles:
        offsets = range(self.log_start_offset, self.log_end_offset + 1)
        return SnapshotFiles(self.source.file_system, self.files.snapshots, offsets)

    def producer_state(self) -> ProducerTable:
        """Return the state of this partition's producers at the log end, as a broker would have it."""
        table, completed = ProducerTable(), list[CompletedTxn]()
        loaded = self._snapshots.load_newest(table)
        start = self.log_start_offset if loaded is None else loaded
        for i, segment in enumerate(self.segments):
            if i + 1 == len(self.segments) or self.segments[i + 1].base_offset > start:
                for index in segment.indexes():
                    table.replay(index, start, completed)
                    completed.clear()
                segment.close()
        return table

    def producers(self, *, now_ms: int) -> list[ProducerStateEntry]:
        """Return the producers that DescribeProducers shows at ``now_ms``: producers idle for a day have
        expired."""
        table = self.producer_state()
        table.expire(now_ms, LogConfig.producer_id_expiration_ms)
        return table.entries()

    def transactions(
        self, start_offset: int | None = None, end_offset: int | None = None
    ) -> list[TransactionRange]:
        """Return the transactions with records in [start_offset, end_offset): ended ones in the order of
        their markers, then open ones."""
        return Transactions(self.iter_transactions(start_offset, end_offset))

    def iter_transactions(
        self, start_offset: int | None = None, end_offset: int | None = None
    ) -> Iterator[TransactionRange]:
        """Yield the result of ``transactions`` one by one, without keeping all in memory."""
        check_integers(start_offset=start_offset, end_offset=end_offset)
        check_end_offset(end_offset)
        start = self.log_start_offset if start_offset is None else start_offset
        end = self.log_end_offset if end_offset is None else end_offset
        return transactions_between(self.segments, start, end)

    def aborted_transactions(
        self, start_offset: int | None = None, end_offset: int | None = None
    ) -> list[TransactionRange]:
        """Return the aborted transactions among ``transactions``."""
        found = self.iter_transactions(start_offset, end_offset)
        return Transactions(txn for txn in found if txn.outcome == "aborted")

    def _plan_checkpoint(self, next_offset: int, planned: HeaderPoint | None) -> PlanCheckpoint:
        """Return the checkpoint for a later view to continue at; offsets below ``next_offset`` are
        planned."""
        seen, checked_from = self._undecided.seen(), self._log_end.checked_from
        start = self.log_start_offset
        return PlanCheckpoint(self.topic_partition, start, next_offset, planned, seen, checked_from)

    def close(self) -> None:
        """Close all files. Safe to call if the directory could not be listed."""
        listed: PartitionFiles | None = self.__dict__.get("files")
        for segment in listed.segments if listed is not None else ():
            segment.close()
