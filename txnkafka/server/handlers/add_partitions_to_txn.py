"""AddPartitionsToTxn: adds partitions to a transaction.

Versions 0 to 5. Producers send 0 to 3, for one transaction; internal topics get TOPIC_AUTHORIZATION_FAILED.
Brokers send 4 and 5, for several transactions, to add partitions or only to verify them (KIP-890). Before 2,
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH. Clients with ``transaction.version`` 2 do not send it, because
Produce adds the partitions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from txnkafka.coordinator.old_clients import error_for
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.error_codes import ErrorCode
    from txnkafka.server.peer import Peer, Reply

_FROM_BROKERS = 4


@serves("AddPartitionsToTxn")
def handle(
    broker: Broker, request: AddPartitionsToTxnRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer when the partitions of all transactions are durable."""
    if version < _FROM_BROKERS:
        broker.transactions.add_partitions(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            _partitions(topics := request.v3_and_below_topics),
            lambda errors: reply(
                AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, errors, version))
            ),
        )
        return
    results: dict[int, AddPartitionsToTxnResult] = {}
    transactions = request.transactions

    def added(i: int, topics: tuple[AddPartitionsToTxnTopicResult, ...]) -> None:
        name = transactions[i].transactional_id
        results[i] = AddPartitionsToTxnResult(transactional_id=name, topic_results=topics)
        if len(results) == len(transactions):
            in_order = tuple(results[i] for i in range(len(transactions)))
            reply(AddPartitionsToTxnResponse(results_by_transaction=in_order))

    if not transactions:
        reply(AddPartitionsToTxnResponse())
    for i, transaction in enumerate(transactions):
        _add(broker, transaction, version, peer, partial(added, i))


def _add(
    broker: Broker,
    transaction: AddPartitionsToTxnTransaction,
    version: int,
    peer: Peer,
    done: Callable[[tuple[AddPartitionsToTxnTopicResult, ...]], None],
) -> None:
    topics = transaction.topics
    if transaction.verify_only:
        topics = tuple([topic for topic in topics if topic.partitions])  # as in Kafka
    broker.transactions.add_partitions(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        _partitions(topics),
        lambda errors: done(_results(topics, errors, version)),
        verify_only=transaction.verify_only,
        client_transaction_version=2,
        is_client=False,
    )


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], errors: Mapping[TopicPartition, ErrorCode], version: int
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    results = []
    for topic in topics:
        partitions = []
        for number in topic.partitions:
            error = error_for("AddPartitionsToTxn", version, errors[TopicPartition(topic.name, number)])
            partitions.append(
                AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=error)
            )
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=tuple(partitions)))
    return tuple(results)
