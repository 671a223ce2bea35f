"""Judges whether an open transaction is healthy or hangs, by comparing the partition with the coordinator.

A transaction hangs if no end marker will ever be written without intervention: the coordinator has no
transactional id for the producer, its transaction does not contain the partition, or it has another epoch.
This is the join of ``kafka-transactions.sh find-hanging`` (KIP-664), computed from files. All functions are
pure: facts in, a verdict with its reason out. If data is missing, the verdict is "unknown", never "hanging".
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.coordinator.txn.decided import OpenTransaction, ended_by
from txnkafka.coordinator.txn.txn_image import COMPLETE
from txnkafka.shown import duration
from txnkafka.wire.records import TransactionMetadata, TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka._core.read_committed import TransactionRange
    from txnkafka.logdir.coordinator import CoordinatorView
    from txnkafka.model import TopicPartition

MAX_TRANSACTION_TIMEOUT_MS = 15 * 60_000  # Kafka's default of transaction.max.timeout.ms
NEVER_TIMES_OUT = (1 << 31) - 1  # the timeout of a transaction with two-phase commit
PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class Verdict(enum.StrEnum):
    """The reason for the last stable offset; docs/lso.md explains each."""

    NOT_STUCK = "NOT_STUCK"
    OPEN_WITHIN_TIMEOUT = "OPEN_WITHIN_TIMEOUT"
    OPEN_OVERDUE = "OPEN_OVERDUE"
    MARKER_PENDING = "MARKER_PENDING"
    COMPLETED_WITHOUT_MARKER = "COMPLETED_WITHOUT_MARKER"
    HANGING_NO_TRANSACTIONAL_ID = "HANGING_NO_TRANSACTIONAL_ID"
    HANGING_PARTITION_NOT_IN_TXN = "HANGING_PARTITION_NOT_IN_TXN"
    HANGING_EPOCH_MISMATCH = "HANGING_EPOCH_MISMATCH"
    HW_BEHIND = "HW_BEHIND"
    UNKNOWN_LOG_CUT_SHORT = "UNKNOWN_LOG_CUT_SHORT"
    UNKNOWN_NO_COORDINATOR_DATA = "UNKNOWN_NO_COORDINATOR_DATA"

    @property
    def is_hanging(self) -> bool:
        """True if no end marker will be written without intervention."""
        return self.startswith("HANGING_")

    @property
    def needs_marker(self) -> bool:
        """True if an operator must get the end marker written: the coordinator will not write it."""
        return self.is_hanging or self is Verdict.COMPLETED_WITHOUT_MARKER

    @property
    def is_stuck(self) -> bool:
        """True if the transaction needs an operator's attention."""
        return self.is_hanging or self in (
            Verdict.OPEN_OVERDUE, Verdict.MARKER_PENDING, Verdict.COMPLETED_WITHOUT_MARKER
        )  # fmt: skip

    @property
    def is_unknown(self) -> bool:
        """True if missing files would decide whether the transaction needs attention."""
        return self.startswith("UNKNOWN_")


class Judgement(NamedTuple):
    """A verdict and its reason in words."""

    verdict: Verdict
    reason: str


class Circumstances(NamedTuple):
    """The facts for a verdict in addition to the two views.

    ``settled``: the broker was stopped cleanly, so all files are from the same moment. Otherwise a
    transaction counts as hanging only if its last record is older than ``max_transaction_timeout_ms``, as in
    Kafka's tool: files copied one after the other contradict each other for a while. ``cut_short``: the end
    of the log is missing or damaged here, and may have contained an end marker. ``now_origin`` is the origin
    of ``now_ms`` in words."""

    now_ms: int
    max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
    settled: bool = False
    cut_short: bool = False
    now_origin: str = "as the caller says"


def judge(
    topic_partition: TopicPartition | None,
    transaction: TransactionRange,
    coordinator: CoordinatorView,
    circumstances: Circumstances,
    has_marker_since: Callable[[int], bool] = lambda time_ms: False,
) -> Judgement:
    """Judge a transaction that has no end marker in the partition. ``topic_partition`` is None if its name is
    unknown. ``has_marker_since`` returns True if the partition has an earlier marker of the producer, written
    at the given time or later."""
    owner = coordinator.owner(transaction.producer_id)
    if owner is None:
        found = _without_owner(transaction.producer_id, coordinator)
    elif topic_partition is not None and _is_completed(
        topic_partition, transaction, owner, coordinator, has_marker_since
    ):
        found = _completed(owner)
    else:
        found = _with_owner(topic_partition, transaction, owner, circumstances.now_ms)
    if not found.verdict.needs_marker:
        return found
    if owner is not None and not coordinator.is_current(owner.transactional_id):
        return Judgement(
            Verdict.UNKNOWN_NO_COORDINATOR_DATA,
            f"{found.reason}; but the coordinator's log is damaged here and may have said something newer",
        )
    if circumstances.cut_short:
        return Judgement(
            Verdict.UNKNOWN_LOG_CUT_SHORT,
            f"{found.reason}; but the end of this log is missing or damaged, and may have had the marker",
        )
    age = circumstances.now_ms - transaction.last_timestamp
    if not circumstances.settled and age <= circumstances.max_transaction_timeout_ms:
        return Judgement(
            Verdict.OPEN_WITHIN_TIMEOUT,
            f"{found.reason}; but its last record is only {duration(max(age, 0))} old and the broker was not "
            "stopped cleanly, so the coordinator's files may just be of another moment",
        )
    return found


def _is_completed(
    topic_partition: TopicPartition,
    transaction: TransactionRange,
    owner: TransactionMetadata,
    coordinator: CoordinatorView,
    has_marker_since: Callable[[int], bool],
) -> bool:
    """Return True if the open transaction may be the coordinator's last completed transaction."""
    if owner.state not in COMPLETE:
        return False
    ended = ended_by(None, coordinator.last_prepared(owner.transactional_id), owner)
    opened = OpenTransaction(topic_partition, transaction.producer_id, transaction.producer_epoch)
    return ended.may_contain(opened) and not has_marker_since(ended.started_ms)


def _completed(owner: TransactionMetadata) -> Judgement:
    outcome = "committed" if owner.state is TransactionState.COMPLETE_COMMIT else "aborted"
    return Judgement(
        Verdict.COMPLETED_WITHOUT_MARKER,
        f"the coordinator has {owner.transactional_id!r} in state {owner.state.label}: the transaction was "
        f"probably {outcome}, and its end marker was never written here; Apache Kafka leaves that at a stop",
    )


def _without_owner(producer_id: int, coordinator: CoordinatorView) -> Judgement:
    if coordinator.is_complete:
        return Judgement(
            Verdict.HANGING_NO_TRANSACTIONAL_ID,
            f"no transactional id has the producer id {producer_id}: "
            "the coordinator has forgotten it, and no end marker will come",
        )
    if not coordinator.partitions:
        return Judgement(
            Verdict.UNKNOWN_NO_COORDINATOR_DATA,
            "there are no partitions of __transaction_state here that could say whose it is",
        )
    return Judgement(Verdict.UNKNOWN_NO_COORDINATOR_DATA, _incomplete(producer_id, coordinator))


def _incomplete(producer_id: int, coordinator: CoordinatorView) -> str:
    here = ", ".join(map(str, coordinator.partitions))
    if coordinator.damaged_partitions:
        why = f"damaged: {', '.join(map(str, sorted(coordinator.damaged_partitions)))}"
    elif coordinator.missing_partitions:
        why = f"missing: {', '.join(map(str, coordinator.missing_partitions))}, and perhaps more"
    else:
        why = "which are perhaps not all"
    return (
        f"the partitions of __transaction_state that are here ({here}; {why}) "
        f"do not name the producer id {producer_id}"
    )


def _with_owner(
    topic_partition: TopicPartition | None,
    transaction: TransactionRange,
    owner: TransactionMetadata,
    now_ms: int,
) -> Judgement:
    kind = " (two-phase commit)" if owner.transaction_timeout_ms == NEVER_TIMES_OUT else ""
    says = f"the coordinator has {owner.transactional_id!r}{kind} in state {owner.state.label}"
    other = _other_identity(transaction, owner, says)
    if other is not None:
        return other
    if topic_partition is None and owner.topic_partitions:
        return Judgement(
            Verdict.UNKNOWN_NO_COORDINATOR_DATA,
            f"{says}, and {_contents(owner)}; whether this is one of them, the directory's name does not say",
        )
    if topic_partition not in owner.topic_partitions:
        return Judgement(
            Verdict.HANGING_PARTITION_NOT_IN_TXN,
            f"{says}, and {_contents(owner)}: it will send no end marker to this one",
        )
    if owner.state in PREPARED:
        outcome = "commit" if owner.state is TransactionState.PREPARE_COMMIT else "abort"
        return Judgement(
            Verdict.MARKER_PENDING,
            f"{says}: the {outcome} is decided, its end marker has not reached this partition yet",
        )
    if transaction.producer_epoch < owner.producer_epoch:
        return Judgement(
            Verdict.HANGING_EPOCH_MISMATCH,
            f"{says} with epoch {owner.producer_epoch}, while these records have epoch "
            f"{transaction.producer_epoch}: they came after the end of an earlier transaction",
        )
    return _ongoing(owner, says, now_ms)


def _other_identity(transaction: TransactionRange, owner: TransactionMetadata, says: str) -> Judgement | None:
    """Judge records with another producer id than the coordinator has, or with a newer epoch; else None."""
    newer_id = transaction.producer_id == owner.next_producer_id != owner.producer_id
    newer_epoch = (
        transaction.producer_id == owner.producer_id and transaction.producer_epoch > owner.producer_epoch
    )
    if newer_id or newer_epoch:
        return Judgement(
            Verdict.UNKNOWN_NO_COORDINATOR_DATA,
            f"{says} with producer id {owner.producer_id} and epoch {owner.producer_epoch}, which is older "
            "than this transaction: the coordinator's log here ends too early",
        )
    if transaction.producer_id != owner.producer_id:
        return Judgement(
            Verdict.HANGING_EPOCH_MISMATCH,
            f"{says} with the producer id {owner.producer_id}: it has given up {transaction.producer_id}, "
            "and no end marker for that one will come",
        )
    return None


def _contents(owner: TransactionMetadata) -> str:
    if not owner.topic_partitions:
        return "no partition is in a transaction of it"
    names = sorted(map(str, owner.topic_partitions))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"its transaction has only {', '.join(names[:5])}{more}"


def _ongoing(owner: TransactionMetadata, says: str, now_ms: int) -> Judgement:
    timeout = owner.transaction_timeout_ms
    begin = owner.start_timestamp if owner.start_timestamp >= 0 else owner.last_update_timestamp
    open_for = now_ms - begin
    if timeout == NEVER_TIMES_OUT:
        held = duration(max(open_for, 0))
        return Judgement(
            Verdict.OPEN_WITHIN_TIMEOUT,
            f"{says}; it has no timeout, and has held readers back for {held}",
        )
    verdict = Verdict.OPEN_OVERDUE if open_for > timeout else Verdict.OPEN_WITHIN_TIMEOUT
    spent = f"{duration(max(open_for, 0))} of the {duration(timeout)} it may take"
    return Judgement(verdict, f"{says}, open for {spent}")
