"""WriteTxnMarkers: writes end markers into partitions, as ``kafka-transactions abort`` asks (KIP-664).

Versions 1 and 2. 2 has the transaction version, which decides how strictly the marker's epoch is checked; 1
is checked as transaction version 0. The coordinator does not get these markers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.coordinators.marker_writer import WritableMarker
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.error_codes import ErrorCode
    from txnkafka.server.peer import Peer, Reply


@serves("WriteTxnMarkers")
def handle(broker: Broker, request: WriteTxnMarkersRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the markers are durable. Markers of one producer are answered together, as in Kafka."""
    markers = [
        WritableMarker(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            [
                TopicPartition(topic.name, number)
                for topic in marker.topics
                for number in topic.partition_indexes
            ],
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        for marker in request.markers
    ]

    def written(results: Sequence[Mapping[TopicPartition, ErrorCode]]) -> None:
        by_producer: dict[int, dict[TopicPartition, ErrorCode]] = {}
        for marker, errors in zip(markers, results, strict=True):
            by_producer.setdefault(marker.producer_id, {}).update(errors)
        found = (_result(*item) for item in by_producer.items() if item[1])
        reply(WriteTxnMarkersResponse(markers=tuple(found)))

    broker.transactions.write_markers(markers, written)


def _result(producer_id: int, errors: Mapping[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    by_topic: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (topic, number), error in errors.items():
        result = WritableTxnMarkerPartitionResult(partition_index=number, error_code=error)
        by_topic.setdefault(topic, []).append(result)
    return WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(name=topic, partitions=tuple(partitions))
            for topic, partitions in by_topic.items()
        ),
    )
