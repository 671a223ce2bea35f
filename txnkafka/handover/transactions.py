"""Predicts the fate of transactional ids and open transactions at the next owner. Pure.

Source: ``TransactionCoordinator.onElection``, ``TransactionStateManager.loadTransactionMetadata``,
``TransactionMarkerChannelManager``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from txnkafka.handover.report import Owner, TransactionRow, error, warning
from txnkafka.logdir.lso import explanation_of
from txnkafka.logdir.verdict import NEVER_TIMES_OUT, Circumstances, Verdict
from txnkafka.model import NO_PRODUCER_EPOCH
from txnkafka.shown import duration
from txnkafka.wire.records import TransactionState

if TYPE_CHECKING:
    from txnkafka.logdir import Finding, PartitionView
    from txnkafka.logdir.coordinator import CoordinatorView
    from txnkafka.logdir.explain import JudgedTransaction
    from txnkafka.wire.records import TransactionMetadata

_S = TransactionState
_OPEN = (_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT)


def transaction_rows(coordinator: CoordinatorView, to: Owner, now_ms: int) -> list[TransactionRow]:
    """Return a row per transactional id, open transactions first."""
    rows = [
        TransactionRow(
            state.transactional_id, state.producer_id, state.producer_epoch, state.state.label,
            [str(each) for each in sorted(state.topic_partitions)], state.state in _OPEN,
            _fate(state, to, now_ms),
        )
        for state in coordinator.transactions.values()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (not row.is_open, row.transactional_id))


def _fate(state: TransactionMetadata, to: Owner, now_ms: int) -> str:
    count = len(state.topic_partitions)
    where = "1 partition" if count == 1 else f"{count} partitions"
    if state.state is _S.PREPARE_COMMIT:
        return f"committed: {to.label} writes the markers that are missing in {where} when it starts"
    if state.state is _S.PREPARE_ABORT:
        return f"aborted: {to.label} writes the markers that are missing in {where} when it starts"
    if state.state is _S.ONGOING:
        return _open_fate(state, to, now_ms)
    if state.state in (_S.DEAD, _S.PREPARE_EPOCH_FENCE):
        return "is being removed or fenced: its producer gets a new epoch when it reconnects"
    return "continues with its producer id and epoch"


def _open_fate(state: TransactionMetadata, to: Owner, now_ms: int) -> str:
    if state.next_producer_epoch != NO_PRODUCER_EPOCH and to is Owner.KAFKA:
        return "stays open until it is fenced: the producer that has kept it (KIP-939) cannot end it there"
    if state.transaction_timeout_ms == NEVER_TIMES_OUT:
        return "stays open until its producer ends it: it has no timeout (two-phase commit)"
    left = state.start_timestamp + state.transaction_timeout_ms - now_ms
    if left <= 0:
        return f"stays open; its timeout is over, {to.label} aborts it soon after it starts"
    return f"stays open; {to.label} aborts it in {duration(left)} unless its producer ends it"


def coordinator_findings(coordinator: CoordinatorView) -> Iterator[Finding]:
    """Yield the damage in the coordinator's log: Apache Kafka loads no record after it."""
    for finding in coordinator.findings:
        yield error(finding.code, finding.file, finding.message, finding.remedy)


def hanging(views: Iterable[PartitionView], coordinator: CoordinatorView, now_ms: int) -> Iterator[Finding]:
    """Yield a finding for each open transaction that no owner will end by itself, so that it blocks
    ``read_committed`` readers for ever."""
    for view in views:
        for judged in explanation_of(view, coordinator, Circumstances(now_ms)).open_transactions:
            if judged.verdict.is_hanging or judged.verdict is Verdict.COMPLETED_WITHOUT_MARKER:
                yield warning(
                    "hanging-transaction", view.path,
                    f"the transaction of producer {judged.transaction.producer_id} that is open since offset "
                    f"{judged.transaction.first_offset} hangs: {judged.reason}",
                    judged.repair.command or judged.repair.advice,
                )  # fmt: skip
        view.close()


def may_be_decided(views: Iterable[PartitionView], coordinator: CoordinatorView) -> bool:
    """Return True if an open transaction belongs to a transactional id that will not end it: the
    coordinator's log may have its outcome."""
    for view in views:
        report = explanation_of(view, coordinator, Circumstances(0)) if view.open_transactions else None
        view.close()
        opened = [] if report is None else report.open_transactions
        if any(each.coordinator is not None and not _is_alive(each) for each in opened):
            return True
    return False


def _is_alive(judged: JudgedTransaction) -> bool:
    alive = (Verdict.OPEN_WITHIN_TIMEOUT, Verdict.OPEN_OVERDUE, Verdict.MARKER_PENDING)
    return judged.verdict in alive
