"""Explains the last stable offset of a partition.

The oldest open transaction determines it, and its verdict is the partition's. The waiting records are counted
from batch headers: all data from there to the log end, of any producer. A closed segment that reaches beyond
the last stable offset cannot be compacted or copied to tiered storage.
Source: UnifiedLog.fetchLastStableOffset, LogCleanerManager.cleanableOffsets, RemoteLogManager.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from txnkafka.logdir.explain import Explanation, JudgedTransaction, Waiting
from txnkafka.logdir.header_pass import segment_containing
from txnkafka.logdir.lost import lost_in
from txnkafka.logdir.repair_advice import repair_advice
from txnkafka.logdir.verdict import Circumstances, Judgement, Verdict, judge
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL

if TYPE_CHECKING:
    from txnkafka._core.read_committed import TransactionRange
    from txnkafka.logdir.coordinator import CoordinatorView
    from txnkafka.logdir.log_view import LogView
    from txnkafka.model import ProducerStateEntry


def explanation_of(
    view: LogView,
    coordinator: CoordinatorView,
    circumstances: Circumstances,
    *,
    with_lost: bool = False,
) -> Explanation:
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
    return Explanation(
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
    view: LogView, coordinator: CoordinatorView, circumstances: Circumstances
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


def _has_marker(view: LogView, transaction: TransactionRange, since_ms: int) -> bool:
    """Return True if the producer ended another transaction in this partition at ``since_ms`` or later."""
    return any(
        each.producer_id == transaction.producer_id and each.marker_timestamp >= since_ms
        for each in view.iter_transactions()
        if each.outcome != "open"
    )


def _without_open_transactions(view: LogView) -> Judgement:
    high_watermark, end = view.high_watermark, view.log_end_offset
    if high_watermark is not None and high_watermark < end:
        return Judgement(
            Verdict.HW_BEHIND,
            f"no transaction is open; the broker noted the high watermark {high_watermark} last, where the "
            f"log ended for its consumers, and what lies behind it up to {end} may not be replicated",
        )
    return Judgement(Verdict.NOT_STUCK, "no transaction is open")


def waiting_behind(view: LogView, offset: int) -> Waiting:
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
