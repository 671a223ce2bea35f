"""ListTransactions (key 66): transactional ids that a broker coordinates (KIP-664).

By version:

1  by duration (KIP-994)
2  by pattern (KIP-1152)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string
from txnkafka.wire.schema import INT64, STRING


@message
class ListTransactionsRequest:
    """``ListTransactionsRequest.json``."""

    state_filters: tuple[str, ...] = array(STRING)
    producer_id_filters: tuple[int, ...] = array(INT64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="0+", default=None)


@message
class TransactionState:
    """An element of ``transaction_states``."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message
class ListTransactionsResponse:
    """``ListTransactionsResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: tuple[str, ...] = array(STRING)
    transaction_states: tuple[TransactionState, ...] = array(TransactionState)
