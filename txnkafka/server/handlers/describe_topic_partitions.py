"""DescribeTopicPartitions: topics and their partitions, page by page (KIP-966).

Version 0. Topics are sorted by name, and start at the cursor of the request; without names all topics are
described. The cursor of the response is the start of the next page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.server.error_response import error_response
from txnkafka.server.handlers import serves
from txnkafka.server.handlers.metadata import ALL_OF_TOPIC, INTERNAL_TOPICS, error_of
from txnkafka.wire.messages.apis import APIS
from txnkafka.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

KEY: Final = 75
MOST_PARTITIONS: Final = 2_000  # max.request.partition.size.limit


@serves("DescribeTopicPartitions")
def handle(
    broker: Broker, request: DescribeTopicPartitionsRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer at once."""
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    named = {topic.name for topic in request.topics}
    names = sorted(name for name in named or broker.image.topics if name >= first)
    if cursor is not None and (cursor.partition_index < 0 or (named and first not in named)):
        reply(error_response(APIS[KEY], version, request, ErrorCode.INVALID_REQUEST))
        return
    left = max(min(request.response_partition_limit, MOST_PARTITIONS), 1)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    following: Cursor | None = None
    for name in names:
        if not left:
            following = Cursor(topic_name=name)
            break
        begin = cursor.partition_index if cursor is not None and name == first else 0
        topic = _topic(broker, name, begin, left)
        if topic.error_code and not named:
            continue
        topics.append(topic)
        left -= len(topic.partitions)
        image = broker.image.topics.get(name)
        if image is not None and begin + len(topic.partitions) < len(image.partitions):
            following = Cursor(topic_name=name, partition_index=begin + len(topic.partitions))
            break
    reply(DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=following))


def _topic(broker: Broker, name: str, begin: int, limit: int) -> DescribeTopicPartitionsResponseTopic:
    """Return a topic with at most ``limit`` partitions, or with its error."""
    topic = broker.image.topics.get(name)
    is_internal = name in INTERNAL_TOPICS
    if topic is None:
        return DescribeTopicPartitionsResponseTopic(
            error_code=error_of(name),
            name=name,
            is_internal=is_internal,
            topic_authorized_operations=ALL_OF_TOPIC,
        )
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=is_internal,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                partition_index=number,
                leader_id=each.leader,
                leader_epoch=each.leader_epoch,
                replica_nodes=tuple(each.replicas),
                isr_nodes=tuple(each.isr),
                eligible_leader_replicas=tuple(each.eligible_leader_replicas),
                last_known_elr=tuple(each.last_known_elr),
            )
            for number, each in sorted(topic.partitions.items())[begin : begin + limit]
        ),
        topic_authorized_operations=ALL_OF_TOPIC,
    )
