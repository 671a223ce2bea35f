"""ListTransactions and DescribeTransactions: the rows of a coordinator's transactional ids.

Source: TransactionStateManager.listTransactionStates, TransactionCoordinator.handleDescribeTransactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.coordinator.re2_pattern import PatternError, Re2Pattern
from txnkafka.coordinator.txn.txn_image import PREPARED
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

if TYPE_CHECKING:
    from txnkafka.coordinator.txn.txn_coordinator import TransactionCoordinator

BY_LABEL: Final = {state.label: state for state in TransactionState}
MOST_STEPS: Final = 200_000_000  # at most a second


class Filters(NamedTuple):
    """The filters of ListTransactions; a row must pass every filter. Empty sets, a negative duration
    (milliseconds) and an empty pattern pass every row."""

    producer_ids: frozenset[int] = frozenset()
    states: frozenset[str] = frozenset()
    duration_ms: int = -1
    pattern: str = ""


class Listed(NamedTuple):
    """A row of ListTransactions."""

    transactional_id: str
    producer_id: int
    state: str


class Listing(NamedTuple):
    """The answer of ListTransactions; unknown states of the request are echoed."""

    error: ErrorCode
    transactions: tuple[Listed, ...] = ()
    unknown_states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """A row of DescribeTransactions; with an error only the id is valid. ``partitions`` are those without
    a written marker in PREPARE_*."""

    error: ErrorCode
    transactional_id: str
    producer_id: int = 0
    producer_epoch: int = 0
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = 0
    partitions: tuple[TopicPartition, ...] = ()


def list_transactions(coordinator: TransactionCoordinator, filters: Filters, now_ms: int) -> Listing:
    """Return the rows that fulfil all filters; INVALID_REGULAR_EXPRESSION for an invalid pattern or one whose
    matches take too long."""
    try:
        found = [each for each in _alive(coordinator) if _fulfils(each, filters, now_ms)]
        if filters.pattern:
            found = _matching(filters.pattern, found)
    except PatternError:
        return Listing(ErrorCode.INVALID_REGULAR_EXPRESSION)
    rows = (Listed(each.transactional_id, each.producer_id, each.state.label) for each in found)
    return Listing(ErrorCode.NONE, tuple(sorted(rows)), tuple(sorted(filters.states - BY_LABEL.keys())))


def _matching(text: str, found: list[TransactionMetadata]) -> list[TransactionMetadata]:
    """Return those whose transactional ids the pattern matches. Raises PatternError."""
    pattern = Re2Pattern(text)
    if sum(pattern.steps(each.transactional_id) for each in found) > MOST_STEPS:
        raise PatternError("matching takes too long")
    return [each for each in found if pattern.fullmatch(each.transactional_id)]


def _alive(coordinator: TransactionCoordinator) -> Iterator[TransactionMetadata]:
    for state in coordinator.partitions.values():
        for metadata in state.metadata.values():
            if _is_shown(coordinator.metadata_of(metadata.transactional_id)):
                yield metadata


def _is_shown(metadata: TransactionMetadata | None) -> bool:
    return metadata is not None and metadata.state != TransactionState.DEAD


def _fulfils(metadata: TransactionMetadata, filters: Filters, now_ms: int) -> bool:
    if filters.producer_ids and metadata.producer_id not in filters.producer_ids:
        return False
    if filters.states and metadata.state.label not in filters.states:
        return False
    return filters.duration_ms < 0 or now_ms - metadata.start_timestamp > filters.duration_ms


def describe(coordinator: TransactionCoordinator, transactional_id: str) -> Description:
    """Return the row of a transactional id."""
    if not transactional_id:
        return Description(ErrorCode.INVALID_REQUEST, transactional_id)
    if coordinator.runtime.state_of(transactional_id) is None:
        return Description(ErrorCode.NOT_COORDINATOR, transactional_id)
    metadata = coordinator.metadata_of(transactional_id)
    if metadata is None or not _is_shown(metadata):
        return Description(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    partitions = metadata.topic_partitions
    if metadata.state in PREPARED:
        partitions = coordinator.markers.remaining(transactional_id)
    return Description(
        ErrorCode.NONE,
        transactional_id,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state.label,
        metadata.transaction_timeout_ms,
        metadata.start_timestamp,
        tuple(sorted(partitions)),
    )
