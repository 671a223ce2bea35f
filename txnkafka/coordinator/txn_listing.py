"""ListTransactions and DescribeTransactions: what a coordinator shows of its transactional ids.

Source: TransactionStateManager.listTransactionStates, TransactionCoordinator.handleDescribeTransactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

__all__ = ["Description", "Filters", "Listed", "Listing", "described", "listed"]

BY_LABEL: Final = {state.label: state for state in TransactionState}


class Filters(NamedTuple):
    """What ListTransactions asks for: empty sets, a negative duration (milliseconds) and an empty pattern do
    not restrict. A transaction has to fulfil all of them."""

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
    """The answer of ListTransactions; states of the request that do not exist are echoed."""

    error: ErrorCode
    transactions: tuple[Listed, ...] = ()
    unknown_states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """A row of DescribeTransactions; nothing beside the id has a meaning where there is an error.
    ``partitions`` are those whose marker is not written yet."""

    error: ErrorCode
    transactional_id: str
    producer_id: int = 0
    producer_epoch: int = 0
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = 0
    partitions: tuple[TopicPartition, ...] = ()


def listed(transactions: Iterable[TransactionMetadata], filters: Filters, now_ms: int) -> Listing:
    """The rows that fulfil the filters, and INVALID_REGULAR_EXPRESSION for a pattern that is none."""
    unknown = tuple(sorted(filters.states - BY_LABEL.keys()))
    try:
        pattern = re.compile(filters.pattern) if filters.pattern else None
    except re.error:
        return Listing(ErrorCode.INVALID_REGULAR_EXPRESSION)
    found = [
        Listed(each.transactional_id, each.producer_id, each.state.label)
        for each in transactions
        if _fulfils(each, filters, now_ms) and (pattern is None or pattern.fullmatch(each.transactional_id))
    ]
    return Listing(ErrorCode.NONE, tuple(sorted(found)), unknown)


def _fulfils(metadata: TransactionMetadata, filters: Filters, now_ms: int) -> bool:
    if metadata.state == TransactionState.DEAD:
        return False
    if filters.producer_ids and metadata.producer_id not in filters.producer_ids:
        return False
    if filters.states and metadata.state.label not in filters.states:
        return False
    return filters.duration_ms < 0 or now_ms - metadata.start_timestamp > filters.duration_ms


def described(metadata: TransactionMetadata, partitions: frozenset[TopicPartition]) -> Description:
    """The row of a transactional id."""
    if metadata.state == TransactionState.DEAD:
        return Description(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, metadata.transactional_id)
    return Description(
        ErrorCode.NONE,
        metadata.transactional_id,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state.label,
        metadata.transaction_timeout_ms,
        metadata.start_timestamp,
        tuple(sorted(partitions)),
    )
