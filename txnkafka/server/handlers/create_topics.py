"""CreateTopics: creates topics by number of partitions or by assignment.

Versions 2 to 7. From 4 on clients may send -1 partitions or replicas for the defaults of the broker
(KIP-464). The response has the created partitions and configs from 5 on (KIP-525), the topic id from 7 on.
Each topic succeeds or fails by itself. With ``validate_only`` nothing is created.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from txnkafka.broker.requests import NewTopic, TopicResult
from txnkafka.error_codes import ErrorCode
from txnkafka.server.config_entries import topic_entries
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

_METADATA_TOPIC: Final = "__cluster_metadata"


@serves("CreateTopics")
def handle(broker: Broker, request: CreateTopicsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the topics can be written to."""
    counts = Counter(topic.name for topic in request.topics)
    refused = [
        TopicResult(name, ErrorCode.INVALID_REQUEST, message)
        for name, count in counts.items()
        if (message := _refusal(name, count)) is not None
    ]
    names = {result.name for result in refused}
    wanted = [_new_topic(topic) for topic in request.topics if topic.name not in names]

    def created(results: list[TopicResult]) -> None:
        rows = _Rows(broker)
        topics = tuple(_result(each, rows) for each in [*results, *refused])
        reply(CreateTopicsResponse(topics=topics))

    broker.topics.create(wanted, created, validate_only=request.validate_only)


def _refusal(name: str, count: int) -> str | None:
    if name == _METADATA_TOPIC:
        return f"Creation of internal topic {_METADATA_TOPIC} is prohibited."
    return "Duplicate topic name." if count > 1 else None


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {config.name: config.value for config in topic.configs},
        {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments},
    )


class _Rows:
    """Configs of the topics in one response, built once for all topics with equal configs."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._made: dict[tuple[tuple[str, str], ...], tuple[CreatableTopicConfigs, ...]] = {}

    def of(self, own: Mapping[str, str]) -> tuple[CreatableTopicConfigs, ...]:
        """Return the configs of a topic that has set ``own``."""
        key = tuple(own.items())
        if key not in self._made:
            self._made[key] = tuple(
                CreatableTopicConfigs(name=each.name, value=each.value, config_source=each.source)
                for each in topic_entries(self._broker.configs, own)
            )
        return self._made[key]


def _result(result: TopicResult, rows: _Rows) -> CreatableTopicResult:
    if result.error != ErrorCode.NONE:
        message = result.message or result.error.name
        return CreatableTopicResult(name=result.name, error_code=result.error, error_message=message)
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id or ZERO_UUID,
        error_message=None,
        num_partitions=result.partition_count,
        replication_factor=1,
        configs=rows.of(result.configs),
    )
