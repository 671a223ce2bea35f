"""The read-only view of one partition: its log's start and end, its transactions, and its records.

All results follow from the ``.log`` files. A producer snapshot only saves the pass from the log's beginning
for the last stable offset, and a ``.txnindex`` is compared with the markers in the log; if they are missing
or damaged, the results are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Unpack

from txnkafka._core.columns import RecordColumns
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.read_committed import TransactionRange
from txnkafka.config import LogConfig
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.decoded import Decode, decoded_records
from txnkafka.logdir.display import Transactions, partition_html
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_point import HeaderPoint
from txnkafka.logdir.log_end import LogEnd, end_of_log
from txnkafka.logdir.noted_offsets import beyond_log_end
from txnkafka.logdir.partition_files import PartitionFiles, list_partition
from txnkafka.logdir.partition_source import PartitionSource
from txnkafka.logdir.plan import UNIT_BYTES, ReadUnit
from txnkafka.logdir.plan_checkpoint import PlanCheckpoint
from txnkafka.logdir.read_request import (
    DamageAction,
    ReadRequest,
    Selection,
    check_end_offset,
    request_of,
    takes_selection,
)
from txnkafka.logdir.requested import end_of, read_requested, units_of
from txnkafka.logdir.snapshot_files import SnapshotFiles
from txnkafka.logdir.survey import transactions_between
from txnkafka.logdir.tables import Tables
from txnkafka.logdir.timestamps import OffsetAndTimestamp, offset_for_timestamp
from txnkafka.logdir.undecided import Undecided, find_undecided
from txnkafka.model import (
    CompletedTxn,
    IsolationLevel,
    IsolationLevelName,
    ProducerStateEntry,
    TopicPartition,
    check_integers,
)
from txnkafka.record.batch import Record, records_of
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt
from txnkafka.record.predicate_columns import needs_headers
from txnkafka.storage.formats.segment_reader import SegmentReader

__all__ = ["PartitionSource", "PartitionView"]


class PartitionView(Tables):
    """A view of a partition at the time of its first use.

    Offsets have Kafka's meaning: ``log_start_offset`` is inclusive; ``log_end_offset``, ``high_watermark``
    and ``last_stable_offset`` are exclusive. ``isolation_level`` defaults to read_committed everywhere.
    """

    def __init__(self, source: PartitionSource, checkpoint: PlanCheckpoint | None = None) -> None:
        """``checkpoint`` is the end of an earlier plan of the partition; this view continues there."""
        self.source = source
        self._checkpoint = checkpoint
        self.topic, self.partition = source.topic_partition
        self.topic_id = source.topic_id

    def __repr__(self) -> str:
        return f"PartitionView({str(self.source.topic_partition)!r}, path={self.source.path!r})"

    def _repr_html_(self) -> str:
        return partition_html(self)

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
        view treats the whole log as replicated.
        """
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

    @takes_selection
    def plan(
        self,
        *,
        unit_bytes: int = UNIT_BYTES,
        findings: list[Finding] | None = None,
        **selection: Unpack[Selection],
    ) -> list[ReadUnit]:
        """Return the units that read the selected records (see ReadRequest), up to the isolation level's end.

        The survey appends damage to ``findings``. Raises OffsetOutOfRangeError for a start below the log
        start or beyond the log end.
        """
        return units_of(self, request_of(**selection), unit_bytes=unit_bytes, findings=findings)

    def _plan_checkpoint(self, next_offset: int, planned: HeaderPoint | None) -> PlanCheckpoint:
        """Return the checkpoint for a later view to continue at; offsets below ``next_offset`` are
        planned."""
        seen, checked_from = self._undecided.seen(), self._log_end.checked_from
        start = self.log_start_offset
        return PlanCheckpoint(self.topic_partition, start, next_offset, planned, seen, checked_from)

    @takes_selection
    def read(self, *, headers: bool = False, **selection: Unpack[Selection]) -> Iterator[RecordColumns]:
        """Yield the selected records (see ReadRequest) as columns, a chunk at a time, without control
        records. ``headers`` adds the columns of record headers.

        The columns' memory is reused for the next chunk unless the caller keeps a view. Raises
        CorruptRecordError before a damaged batch; with ``on_corrupt="skip"``, or a function that takes the
        error, the batch is left out instead.
        """
        request = request_of(**selection)
        headers = headers or needs_headers(request.where)
        return read_requested(self, request, partial(ChunkDecoder, headers=headers))

    @takes_selection
    def records(
        self,
        *,
        decode_key: Decode | None = None,
        decode_value: Decode | None = None,
        **selection: Unpack[Selection],
    ) -> Iterator[Record]:
        """Yield the records of ``read`` as Record objects, with headers. ``decode_key`` and ``decode_value``
        (see ``txnkafka.decoding``) replace bytes by their content; null becomes None."""
        records = self._records(request_of(**selection))
        if decode_key is None and decode_value is None:
            return records
        return decoded_records(records, self.topic_partition, decode_key, decode_value)

    def _records(self, request: ReadRequest) -> Iterator[Record]:
        for columns in read_requested(self, request, partial(ChunkDecoder, headers=True)):
            yield from records_of(columns)

    def _views(self) -> Iterator[PartitionView]:
        yield self

    def offset_for_timestamp(
        self,
        timestamp: int,
        isolation_level: IsolationLevelName | IsolationLevel = IsolationLevel.READ_COMMITTED,
        *,
        on_corrupt: DamageAction | OnCorrupt = "stop",
    ) -> OffsetAndTimestamp | None:
        """Return the first record at or after ``timestamp`` (milliseconds) below the isolation level's end;
        None if none exists. Raises CorruptRecordError if a damaged batch might contain it."""
        check_integers(timestamp=timestamp)
        request = ReadRequest.of(isolation_level, on_corrupt=on_corrupt)
        limits, handler = (self.log_start_offset, end_of(self, request)), request.damage_handler
        try:
            return offset_for_timestamp(self.segments, timestamp, *limits, on_corrupt=handler)
        except CorruptRecordError as error:
            error.locate(topic=self.topic, partition=self.partition)
            raise

    def close(self) -> None:
        """Close all files. Safe to call if the directory could not be listed."""
        listed: PartitionFiles | None = self.__dict__.get("files")
        for segment in listed.segments if listed is not None else ():
            segment.close()
