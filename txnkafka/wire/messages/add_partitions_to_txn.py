"""AddPartitionsToTxn (key 24): adds partitions to a transaction.

By version:

    2  PRODUCER_FENCED
    3  flexible
    4  from brokers: several transactions, to be added to or verified (KIP-890)
    5  TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, int64, message, string
from txnkafka.wire.schema import INT32


@message
class AddPartitionsToTxnTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[int, ...] = array(INT32)


@message
class AddPartitionsToTxnTransaction:
    """An element of ``transactions``."""

    transactional_id: str = string("4+")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "4+")


@message
class AddPartitionsToTxnRequest:
    """``AddPartitionsToTxnRequest.json``."""

    transactions: tuple[AddPartitionsToTxnTransaction, ...] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "0-3")


@message
class AddPartitionsToTxnPartitionResult:
    """An element of ``results_by_partition``."""

    partition_index: int = int32()
    partition_error_code: int = int16()


@message
class AddPartitionsToTxnTopicResult:
    """An element of ``topic_results``."""

    name: str = string()
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = array(
        AddPartitionsToTxnPartitionResult
    )


@message
class AddPartitionsToTxnResult:
    """An element of ``results_by_transaction``."""

    transactional_id: str = string("4+")
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = array(AddPartitionsToTxnTopicResult, "4+")


@message
class AddPartitionsToTxnResponse:
    """``AddPartitionsToTxnResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )
