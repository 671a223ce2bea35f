"""Metadata: this broker, and the topics with the leaders of their partitions.

Versions 0 to 13. Version 0 asks for all topics with an empty list, later ones with null. Missing topics are
created if the client (from version 4 on) and ``auto.create.topics.enable`` allow it. From 12 on the request
may have topic ids; 10 and 11 have the field and must not use it. Authorized operations (from 8 on) are all
operations, since this broker has no ACLs; those on the cluster moved to DescribeCluster after 10.

A request that creates topics is answered after the creation. Kafka answers UNKNOWN_TOPIC_OR_PARTITION first,
and clients retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError
from txnkafka.model import validate_topic
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
# Bits by AclOperation, from AclEntry.supportedOperations.
ALL_OF_TOPIC: Final = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
ALL_OF_CLUSTER: Final = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
ALL_OF_GROUP: Final = sum(1 << code for code in (3, 6, 8, 10, 11))
_NOT_ASKED: Final = -(1 << 31)
_NO_LEADER: Final = -1


@serves("Metadata")
def handle(broker: Broker, request: MetadataRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once, or after the creation of missing topics."""
    answer = _Answer(broker, request, version, peer)
    topics = request.topics
    if topics is None or (version == 0 and not topics):
        reply(answer.of([answer.topic(name) for name in broker.image.topics]))
        return
    refused = _refused(topics, version)
    if refused is not None:
        reply(MetadataResponse(topics=tuple(refused)))  # the response has no other fields, as in Kafka
        return
    missing = answer.to_create(topics)
    if missing:
        broker.topics.auto_create(missing, lambda errors: reply(answer.of_wanted(topics, errors)))
    else:
        reply(answer.of_wanted(topics, {}))


def _refused(topics: tuple[MetadataRequestTopic, ...], version: int) -> list[MetadataResponseTopic] | None:
    """Return all topics as refused if the version does not allow one; None otherwise."""
    if version >= 12 or all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in topics):
        return None
    return [
        MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id
        )
        for topic in topics
    ]


class _Answer:
    """Builder of the response to one request."""

    def __init__(self, broker: Broker, request: MetadataRequest, version: int, peer: Peer) -> None:
        self._broker = broker
        self._version = version
        self._node = peer.node
        self._may_create = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
        self._operations = ALL_OF_TOPIC if request.include_topic_authorized_operations else _NOT_ASKED
        asked_of_cluster = request.include_cluster_authorized_operations
        self._cluster_operations = ALL_OF_CLUSTER if asked_of_cluster else _NOT_ASKED

    def to_create(self, topics: tuple[MetadataRequestTopic, ...]) -> list[str]:
        """Return the missing names to create. A request by id creates nothing."""
        if not self._may_create or any(topic.topic_id != ZERO_UUID for topic in topics):
            return []
        there = self._broker.image.topics
        return list(dict.fromkeys(topic.name for topic in topics if topic.name and topic.name not in there))

    def of_wanted(
        self, topics: tuple[MetadataRequestTopic, ...], errors: Mapping[str, ErrorCode]
    ) -> MetadataResponse:
        """Return the response about these topics; ``errors`` are errors of the creation."""
        by_id = [topic for topic in topics if topic.topic_id != ZERO_UUID]
        if not by_id:
            names = dict.fromkeys(topic.name or "" for topic in topics)
            return self.of([self.topic(name, errors.get(name, ErrorCode.NONE)) for name in names])
        return self.of([self._topic_of_id(each) for each in dict.fromkeys(topic.topic_id for topic in by_id)])

    def of(self, topics: list[MetadataResponseTopic]) -> MetadataResponse:
        """Return the response with these topics."""
        node_id = self._broker.node_id
        broker = MetadataResponseBroker(node_id=node_id, host=self._node.host, port=self._node.port)
        return MetadataResponse(
            brokers=(broker,),
            cluster_id=self._broker.cluster_id,
            controller_id=node_id,
            topics=tuple(topics),
            cluster_authorized_operations=self._cluster_operations,
        )

    def topic(self, name: str, error: ErrorCode = ErrorCode.NONE) -> MetadataResponseTopic:
        """Return a topic with its partitions, or with its error."""
        topic = self._broker.image.topics.get(name)
        is_internal = name in INTERNAL_TOPICS
        if topic is None:
            return MetadataResponseTopic(
                error_code=error or error_of(name),
                name=name,
                is_internal=is_internal,
                topic_authorized_operations=self._operations,
            )
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=name,
            topic_id=topic.topic_id,
            is_internal=is_internal,
            partitions=tuple(
                MetadataResponsePartition(
                    error_code=ErrorCode.LEADER_NOT_AVAILABLE
                    if each.leader == _NO_LEADER
                    else ErrorCode.NONE,
                    partition_index=number,
                    leader_id=each.leader,
                    leader_epoch=each.leader_epoch,
                    replica_nodes=tuple(each.replicas),
                    isr_nodes=tuple(each.isr),
                )
                for number, each in sorted(topic.partitions.items())
            ),
            topic_authorized_operations=self._operations,
        )

    def _topic_of_id(self, topic_id: str) -> MetadataResponseTopic:
        name = self._broker.image.topic_names.get(topic_id)
        if name is not None:
            return self.topic(name)
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)


def error_of(name: str) -> ErrorCode:
    """Return the error for a name without a topic."""
    try:
        validate_topic(name)
    except InvalidTopicError:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
