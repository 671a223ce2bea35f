"""ListOffsets: the offset for a timestamp, or the start or end of a log.

Versions 1 to 11. From 2 on the request has an isolation level: "latest" is the last stable offset for
read_committed, else the high watermark. Leader epochs from 4 on (KIP-320). Special timestamps: -1 latest and
-2 earliest always, -3 largest timestamp from 7 on, -4 earliest local from 8 on, -5 latest tiered from 9 on,
-6 earliest pending upload from 11 on; in an earlier version each is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.requests import OffsetAnswer, OffsetQuery
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.server.isolation_levels import isolation_level
from txnkafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
_UNSUPPORTED: Final = OffsetAnswer(ErrorCode.UNSUPPORTED_VERSION)


@serves("ListOffsets", has_isolation_level=True)
def handle(broker: Broker, request: ListOffsetsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    queries = [
        OffsetQuery(
            TopicPartition(topic.name, partition.partition_index),
            partition.timestamp,
            partition.current_leader_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
        if _is_known(partition, version)
    ]
    asked: dict[str, dict[int, ListOffsetsPartition]] = {}  # a partition named twice is answered once
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(
            (partition.partition_index, partition) for partition in topic.partitions
        )
    answers = broker.list_offsets(queries, isolation_level(request.isolation_level))

    def response(name: str, each: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        is_known = _is_known(each, version)
        answer = answers[TopicPartition(name, each.partition_index)] if is_known else _UNSUPPORTED
        return ListOffsetsPartitionResponse(
            partition_index=each.partition_index,
            error_code=answer.error,
            timestamp=answer.timestamp,
            offset=answer.offset,
            leader_epoch=answer.leader_epoch if version >= 4 else -1,
        )

    reply(
        ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=name,
                    partitions=tuple(response(name, partition) for partition in partitions.values()),
                )
                for name, partitions in asked.items()
            )
        )
    )


def _is_known(partition: ListOffsetsPartition, version: int) -> bool:
    return version >= _SINCE.get(partition.timestamp, 0)
