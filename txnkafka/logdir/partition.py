"""The read-only view of one partition, as ``LogDir`` returns it: its log (``LogView``), its records, and the
explanation of its last stable offset."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Unpack

from txnkafka._core.columns import RecordColumns
from txnkafka.env import SystemClock
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.logdir.clock import Directory, DirectoryClock
from txnkafka.logdir.decoded import Decode, decoded_records
from txnkafka.logdir.display import html_table
from txnkafka.logdir.explain import Explanation
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.log_view import LogView
from txnkafka.logdir.lso import explanation_of
from txnkafka.logdir.partition_source import PartitionSource as PartitionSource
from txnkafka.logdir.plan import UNIT_BYTES, ReadUnit
from txnkafka.logdir.plan_checkpoint import PlanCheckpoint
from txnkafka.logdir.read_request import (
    DamageAction,
    ReadRequest,
    Selection,
    request_of,
    takes_selection,
)
from txnkafka.logdir.requested import read_requested, record_at_time, records_requested, units_of
from txnkafka.logdir.tables import Tables
from txnkafka.logdir.timestamps import OffsetAndTimestamp
from txnkafka.logdir.verdict import MAX_TRANSACTION_TIMEOUT_MS, Circumstances
from txnkafka.model import IsolationLevel, IsolationLevelName, check_integers
from txnkafka.record.batch import Record
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt
from txnkafka.record.predicate_columns import needs_headers


class PartitionView(LogView, Tables):
    """A view of a partition at the time of its first use.

    Offsets have Kafka's meaning: ``log_start_offset`` is inclusive; ``log_end_offset``, ``high_watermark``
    and ``last_stable_offset`` are exclusive. ``isolation_level`` defaults to read_committed everywhere."""

    def __init__(
        self,
        source: PartitionSource,
        checkpoint: PlanCheckpoint | None = None,
        *,
        directory: Directory | None = None,
    ) -> None:
        """``checkpoint`` is the end of an earlier plan of the partition; this view continues there.
        ``directory`` is the log directory, which ``explain`` needs."""
        super().__init__(source, checkpoint)
        self._directory = directory

    def __repr__(self) -> str:
        return f"PartitionView({str(self.source.topic_partition)!r}, path={self.source.path!r})"

    def _repr_html_(self) -> str:
        """Return the offsets of the partition as a table. An error is shown in the table: if raised, a
        notebook would show its traceback."""
        try:
            facts = self._facts()
        except (KafkaError, OSError) as error:
            facts = [("error", str(error))]
        return html_table(f"Partition {self.topic_partition} in {self.path}", ("", ""), facts)

    def _facts(self) -> list[tuple[str, object]]:
        high_watermark = self.high_watermark
        return [
            ("log start offset", self.log_start_offset),
            ("last stable offset", self.last_stable_offset),
            ("high watermark", "unknown" if high_watermark is None else high_watermark),
            ("log end offset", self.log_end_offset),
            ("open transactions", len(self.open_transactions)),
            ("segments", f"{len(self.segments):,}"),
            ("bytes", f"{sum(segment.size for segment in self.segments):,}"),
        ]

    def explain(
        self,
        *,
        now_ms: int | None = None,
        max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS,
    ) -> Explanation:
        """Explain the last stable offset: the verdict, the evidence and the advice of ``txnkafka lso``.

        Timeouts are judged at ``now_ms`` (milliseconds since 1970; default: the newest time that a broker
        left in the directory, or this machine's time while a broker has locked it). A transaction with
        records younger than ``max_transaction_timeout_ms`` counts as hanging only if the broker was stopped
        cleanly. Reads the ``__transaction_state`` partitions of the directory once. Raises LogDirError for a
        view that was not made by ``LogDir.partition``, and the errors of reading headers."""
        check_integers(now_ms=now_ms, max_transaction_timeout_ms=max_transaction_timeout_ms)
        directory = self._directory
        if directory is None:
            raise LogDirError(
                f"{self.path} was opened without its log directory, which names the owners of transactions: "
                f"use LogDir(path).partition({self.topic!r}, {self.partition}).explain()"
            )
        clock = DirectoryClock(directory, SystemClock().now_ms(), now_ms, option="now_ms")
        moment = clock.at(self)
        circumstances = Circumstances(moment.now_ms, max_transaction_timeout_ms, now_origin=moment.origin)
        return explanation_of(self, directory.coordinator, circumstances, with_lost=True)

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
        start or beyond the log end."""
        return units_of(self, request_of(**selection), unit_bytes=unit_bytes, findings=findings)

    @takes_selection
    def read(self, *, headers: bool = False, **selection: Unpack[Selection]) -> Iterator[RecordColumns]:
        """Yield the selected records (see ReadRequest) as columns, a chunk at a time, without control
        records. ``headers`` adds the columns of record headers.

        The columns' memory is reused for the next chunk unless the caller keeps a view. Raises
        CorruptRecordError before a damaged batch; with ``on_corrupt="skip"``, or a function that takes the
        error, the batch is left out instead."""
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
        records = records_requested(self, request_of(**selection))
        if decode_key is None and decode_value is None:
            return records
        return decoded_records(records, self.topic_partition, decode_key, decode_value)

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
        return record_at_time(self, timestamp, ReadRequest.of(isolation_level, on_corrupt=on_corrupt))
