"""DescribeTransactions (key 65): the state of transactional ids (KIP-664)."""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string
from txnkafka.wire.schema import INT32, STRING


@message
class DescribeTransactionsRequest:
    """``DescribeTransactionsRequest.json``."""

    transactional_ids: tuple[str, ...] = array(STRING)


@message
class TopicData:
    """An element of ``topics``."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@message
class TransactionState:
    """An element of ``transaction_states``."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: tuple[TopicData, ...] = array(TopicData)


@message
class DescribeTransactionsResponse:
    """``DescribeTransactionsResponse.json``."""

    throttle_time_ms: int = int32()
    transaction_states: tuple[TransactionState, ...] = array(TransactionState)
