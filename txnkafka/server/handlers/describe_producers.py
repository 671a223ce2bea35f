"""DescribeProducers: producers and open transactions of partitions (KIP-664). Version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError
from txnkafka.model import TopicPartition, validate_topic
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("DescribeProducers")
def handle(broker: Broker, request: DescribeProducersRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once. A partition that is named twice is described once."""
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    reply(
        DescribeProducersResponse(
            topics=tuple(
                TopicResponse(
                    name=name,
                    partitions=tuple(_partition(broker, TopicPartition(name, number)) for number in numbers),
                )
                for name, numbers in asked.items()
            )
        )
    )


def _partition(broker: Broker, partition: TopicPartition) -> PartitionResponse:
    try:
        validate_topic(partition.topic)
    except InvalidTopicError as invalid:
        return PartitionResponse(
            partition_index=partition.partition,
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION,
            error_message=str(invalid),
        )
    error, producers = broker.describe_producers(partition)
    return PartitionResponse(
        partition_index=partition.partition,
        error_code=error,
        error_message=None if error == ErrorCode.NONE else error.name,
        active_producers=tuple(
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer in producers
        ),
    )
