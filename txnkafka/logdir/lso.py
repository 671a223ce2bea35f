"""Explains the last stable offset of a partition.

The oldest open transaction determines it, and its verdict is the partition's. The waiting records are counted
from batch headers: all data from there to the log end, of any producer. A closed segment that reaches beyond
the last stable offset cannot be compacted or copied to tiered storage.
Source: UnifiedLog.fetchLastStableOffset, LogCleanerManager.cleanableOffsets, RemoteLogManager.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.logdir.header_pass import segment_containing
from txnkafka.logdir.lost import Lost, lost_in
from txnkafka.logdir.repair_advice import RepairAdvice, repair_advice
from txnkafka.logdir.verdict import Circumstances, Judgement, Verdict, judge
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL

if TYPE_CHECKING:
    from txnkafka._core.read_committed import TransactionRange
    from txnkafka.logdir.coordinator import CoordinatorView
    from txnkafka.logdir.partition import PartitionView
    from txnkafka.model import ProducerStateEntry
    from txnkafka.wire.records import TransactionMetadata

__all__ = ["JudgedTransaction", "LsoReport", "Waiting", "lso_report"]


class JudgedTransaction(NamedTuple):
    """An open transaction: its state in the partition, its state at the coordinator (None: unknown), the
    verdict, the advice."""

    transaction: TransactionRange
    coordinator: TransactionMetadata | None
    verdict: Verdict
    reason: str
    repair: RepairAdvice

    @property
    def transactional_id(self) -> str | None:
        """The transactional id of its producer; None if unknown."""
        return None if self.coordinator is None else self.coordinator.transactional_id

    @property
    def since_ms(self) -> int | None:
        """The start of the transaction by its first record, else by the coordinator."""
        if self.transaction.first_timestamp >= 0:
            return self.transaction.first_timestamp
        begin = -1 if self.coordinator is None else self.coordinator.start_timestamp
        return begin if begin >= 0 else None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; unknown fields are None."""
        transaction, owner = self.transaction, self.coordinator
        return {
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.producer_epoch,
            "first_offset": transaction.first_offset,
            "first_timestamp": _known(transaction.first_timestamp),
            "last_timestamp": _known(transaction.last_timestamp),
            "records": transaction.records,
            "bytes": transaction.bytes,
            "transactional_id": self.transactional_id,
            "transaction_state": None if owner is None else owner.state.label,
            "transaction_timeout_ms": None if owner is None else owner.transaction_timeout_ms,
            "current_transaction_start_time_ms": None if owner is None else _known(owner.start_timestamp),
            "verdict": self.verdict.value,
            "reason": self.reason,
            **self.repair._asdict(),
        }


class Waiting(NamedTuple):
    """The records that a read_committed reader does not get yet, and the closed segments (``.log`` file
    names) that cannot be compacted or tiered."""

    records: int
    bytes: int
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LsoReport:
    """The report on one partition. ``open_transactions`` begins with the oldest one, which determines the
    last stable offset. ``lost`` is None if the log was not searched for missing offsets."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    last_stable_offset: int
    verdict: Verdict
    reason: str
    open_transactions: tuple[JudgedTransaction, ...]
    waiting: Waiting
    judged: Circumstances
    lost: Lost | None

    @property
    def is_stuck(self) -> bool:
        """True if a transaction hangs, is overdue or waits for its end marker, or if records wait for a
        transaction of unknown outcome."""
        verdicts = [transaction.verdict for transaction in self.open_transactions]
        unknown = any(verdict.is_unknown for verdict in verdicts) and self.waiting.records > 0
        return unknown or any(verdict.is_stuck for verdict in verdicts)

    @property
    def hanging_producers(self) -> frozenset[int]:
        """The ids of producers with hanging transactions."""
        open_transactions = self.open_transactions
        return frozenset(
            each.transaction.producer_id for each in open_transactions if each.verdict.is_hanging
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; unknown fields are None."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "log_start_offset": self.log_start_offset,
            "log_end_offset": self.log_end_offset,
            "high_watermark": self.high_watermark,
            "last_stable_offset": self.last_stable_offset,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "is_stuck": self.is_stuck,
            "waiting_records": self.waiting.records,
            "waiting_bytes": self.waiting.bytes,
            "waiting_segments": list(self.waiting.segments),
            "missing_offsets": None if self.lost is None else [list(each) for each in self.lost.missing],
            "undecided_records": None if self.lost is None else self.lost.records,
            "judged_at": self.judged.now_ms if self.open_transactions else None,
            "open_transactions": [transaction.as_dict() for transaction in self.open_transactions],
        }


def lso_report(
    view: PartitionView,
    coordinator: CoordinatorView,
    circumstances: Circumstances,
    *,
    with_lost: bool = False,
) -> LsoReport:
    """Explain the last stable offset of a partition. ``settled`` and ``cut_short`` of the circumstances are
    taken from the view. ``with_lost``: if a transaction is open, search all batch headers for missing
    offsets; otherwise the headers after the newest producer snapshot suffice."""
    circumstances = circumstances._replace(
        settled=view.source.clean_shutdown and view.source.repair is not False,
        cut_short=any(finding.severity == "error" for finding in view.findings),
    )
    open_transactions = _open_transactions(view, coordinator, circumstances)
    if open_transactions:
        found = Judgement(open_transactions[0].verdict, open_transactions[0].reason)
        boundary = view.last_stable_offset
    else:
        found = _without_open_transactions(view)
        boundary = view.log_end_offset if view.high_watermark is None else view.high_watermark
    return LsoReport(
        topic=view.topic,
        partition=view.partition,
        log_start_offset=view.log_start_offset,
        log_end_offset=view.log_end_offset,
        high_watermark=view.high_watermark,
        last_stable_offset=view.last_stable_offset,
        verdict=found.verdict,
        reason=found.reason,
        open_transactions=open_transactions,
        waiting=waiting_behind(view, boundary),
        judged=circumstances,
        lost=lost_in(view) if with_lost and open_transactions else None,
    )


def _open_transactions(
    view: PartitionView, coordinator: CoordinatorView, circumstances: Circumstances
) -> tuple[JudgedTransaction, ...]:
    found = []
    producers: dict[int, ProducerStateEntry] | None = None
    name = view.topic_partition if view.source.is_named else None
    for transaction in view.open_transactions:
        judgement = judge(
            name, transaction, coordinator, circumstances, partial(_has_marker, view, transaction)
        )
        owner = coordinator.owner(transaction.producer_id)
        if judgement.verdict.is_hanging and producers is None:
            producers = {entry.producer_id: entry for entry in view.producer_state().entries()}
        repair = repair_advice(
            judgement.verdict,
            name,
            transaction,
            transactional_id=None if owner is None else owner.transactional_id,
            producer=(producers or {}).get(transaction.producer_id),
        )
        found.append(JudgedTransaction(transaction, owner, judgement.verdict, judgement.reason, repair))
    return tuple(found)


def _has_marker(view: PartitionView, transaction: TransactionRange, since_ms: int) -> bool:
    """Return True if the producer ended another transaction in this partition at ``since_ms`` or later."""
    return any(
        each.producer_id == transaction.producer_id and each.marker_timestamp >= since_ms
        for each in view.iter_transactions()
        if each.outcome != "open"
    )


def _without_open_transactions(view: PartitionView) -> Judgement:
    high_watermark, end = view.high_watermark, view.log_end_offset
    if high_watermark is not None and high_watermark < end:
        return Judgement(
            Verdict.HW_BEHIND,
            f"no transaction is open; the broker noted the high watermark {high_watermark} last, where the "
            f"log ended for its consumers, and what lies behind it up to {end} may not be replicated",
        )
    return Judgement(Verdict.NOT_STUCK, "no transaction is open")


def waiting_behind(view: PartitionView, offset: int) -> Waiting:
    """Count the data records from ``offset`` to the log end, and list the closed segments that reach beyond
    ``offset``."""
    if offset >= view.log_end_offset:
        return Waiting(0, 0, ())
    segments = view.segments
    first = segment_containing(segments, offset)
    records = size = 0
    for segment in segments[first:]:
        for index in segment.indexes():
            i = index.find(offset)
            for attributes, count, bytes_ in zip(
                index.attributes[i:], index.record_count[i:], index.size[i:], strict=True
            ):
                if not attributes & ATTRIBUTE_CONTROL:
                    records += max(count, 0)
                    size += bytes_
    names = (segment.path.rpartition("/")[2] for segment in segments[first:-1])
    return Waiting(records, size, tuple(names))


def _known(timestamp: int) -> int | None:
    return None if timestamp < 0 else timestamp
