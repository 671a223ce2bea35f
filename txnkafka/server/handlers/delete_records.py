"""DeleteRecords: moves the start of logs (KIP-107). Versions 0 to 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.records.records_deletion import Deleted, delete_records
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("DeleteRecords")
def handle(broker: Broker, request: DeleteRecordsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the new starts are durable."""
    offsets = {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in request.topics
        for each in topic.partitions
    }

    def answer(results: dict[TopicPartition, Deleted]) -> None:
        found: dict[str, list[DeleteRecordsPartitionResult]] = {topic.name: [] for topic in request.topics}
        for partition, deleted in results.items():
            found[partition.topic].append(
                DeleteRecordsPartitionResult(
                    partition_index=partition.partition,
                    low_watermark=deleted.low_watermark,
                    error_code=deleted.error,
                )
            )
        topics = (DeleteRecordsTopicResult(name=name, partitions=tuple(found[name])) for name in found)
        reply(DeleteRecordsResponse(topics=tuple(topics)))

    delete_records(broker, offsets, answer)
