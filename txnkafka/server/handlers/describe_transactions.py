"""DescribeTransactions: state, producer, timeout and partitions of transactional ids (KIP-664). Version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.server.handlers import serves
from txnkafka.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("DescribeTransactions")
def handle(
    broker: Broker, request: DescribeTransactionsRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer at once. An id that is named twice is described once."""
    names = dict.fromkeys(request.transactional_ids)
    states = tuple(_state(broker, transactional_id) for transactional_id in names)
    reply(DescribeTransactionsResponse(transaction_states=states))


def _state(broker: Broker, transactional_id: str) -> TransactionState:
    found = broker.transactions.describe(transactional_id)
    by_topic: dict[str, list[int]] = {}
    for topic, number in found.partitions:
        by_topic.setdefault(topic, []).append(number)
    return TransactionState(
        error_code=found.error,
        transactional_id=transactional_id,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=tuple(
            TopicData(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()
        ),
    )
