"""Topics: create, delete, list, describe, and add partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.admin.call import Call, Calls
from txnkafka.client.admin.names import names_of
from txnkafka.client.admin.refusals import refusal
from txnkafka.client.admin.route import ANY, CONTROLLER
from txnkafka.client.admin.topic_types import (
    CreatedTopic,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from txnkafka.config import text_of
from txnkafka.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from txnkafka.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from txnkafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from txnkafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from txnkafka.errors import KafkaError

_ALL: Final = ""
_IDS: Final = 6  # the first version of DeleteTopics with ids


class TopicCalls(Calls):
    """A part of ``AdminCore``."""

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        config: Mapping[str, object] | None = None,
    ) -> CreatedTopic:
        """Create a topic. -1: as the broker is configured. ``config`` has the settings of the topic by
        Kafka's names: ``{"retention.ms": 3_600_000}``.

        Raises TopicAlreadyExistsError, InvalidTopicError for a name that is not allowed, InvalidConfigError,
        InvalidReplicationFactorError and InvalidPartitionsError (KafkaError with their ``code``)."""
        created = await self.create_topics([NewTopic(name, partitions, replication_factor, None, config)])
        return created[name]

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic]:
        """Create topics; returns them by name. ``validate_only`` only checks them.

        Raises the error of the first topic that is refused, see ``create_topic``; the others are created."""
        wanted = {each.name: each for each in topics}
        timeout_ms = self.config.request_timeout_ms

        def request(names: Sequence[str], version: int) -> CreateTopicsRequest:
            rows = tuple(_creatable(wanted[name]) for name in names)
            return CreateTopicsRequest(topics=rows, timeout_ms=timeout_ms, validate_only=validate_only)

        return await self.results(Call("CreateTopics", CONTROLLER, "topic", request, _created), wanted)

    async def delete_topics(self, topics: str | Iterable[str]) -> None:
        """Delete topics with all their records, by name.

        Raises UnknownTopicOrPartitionError for a topic that does not exist; the others are deleted."""
        timeout_ms = self.config.request_timeout_ms

        def request(names: Sequence[str], version: int) -> DeleteTopicsRequest:
            if version < _IDS:
                return DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=timeout_ms)
            rows = tuple(DeleteTopicState(name=name) for name in names)
            return DeleteTopicsRequest(topics=rows, timeout_ms=timeout_ms)

        names = names_of(topics)
        await self.results(Call("DeleteTopics", CONTROLLER, "topic", request, _deleted), names)
        self.cluster.forget(names)

    async def create_partitions(self, totals: Mapping[str, int], *, validate_only: bool = False) -> None:
        """Add partitions to topics, up to a total number for each topic. Records with keys then go to other
        partitions than before.

        Raises InvalidPartitionsError for a number that is not larger, UnknownTopicOrPartitionError."""
        timeout_ms = self.config.request_timeout_ms

        def request(names: Sequence[str], version: int) -> CreatePartitionsRequest:
            rows = tuple(
                CreatePartitionsTopic(name=name, count=totals[name], assignments=None) for name in names
            )
            return CreatePartitionsRequest(topics=rows, timeout_ms=timeout_ms, validate_only=validate_only)

        await self.results(Call("CreatePartitions", CONTROLLER, "topic", request, _extended), totals)
        self.cluster.forget(totals)

    async def list_topics(self, *, include_internal: bool = False) -> list[TopicListing]:
        """Return all topics, by name. ``include_internal`` adds Kafka's own, such as __consumer_offsets."""
        found = await self.result(Call("Metadata", ANY, "the cluster", _all_topics, _listed), _ALL)
        return [each for each in found if include_internal or not each.is_internal]

    async def describe_topics(self, topics: str | Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """Return topics with their partitions, by name; without names all topics but Kafka's own.

        Raises UnknownTopicOrPartitionError for a topic that does not exist."""
        names = [each.name for each in await self.list_topics()] if topics is None else names_of(topics)
        return await self.results(Call("Metadata", ANY, "topic", _some_topics, _described), names)


def _creatable(topic: NewTopic) -> CreatableTopic:
    has_numbers = topic.assignments is None
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions if has_numbers else -1,
        replication_factor=topic.replication_factor if has_numbers else -1,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(brokers))
            for number, brokers in (topic.assignments or {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=name, value=text_of(value))
            for name, value in (topic.config or {}).items()
        ),
    )


def _created(response: Any, names: Sequence[str]) -> Iterator[tuple[str, CreatedTopic | KafkaError]]:
    for each in response.topics:
        error = refusal(each.error_code, f"topic {each.name}", each.error_message)
        config = {row.name: row.value for row in each.configs or ()}
        result = CreatedTopic(each.name, each.topic_id, each.num_partitions, each.replication_factor, config)
        yield each.name, error or result


def _deleted(response: Any, names: Sequence[str]) -> Iterator[tuple[str, KafkaError | None]]:
    for each in response.responses:
        yield each.name, refusal(each.error_code, f"topic {each.name}", each.error_message)


def _extended(response: Any, names: Sequence[str]) -> Iterator[tuple[str, KafkaError | None]]:
    for each in response.results:
        yield each.name, refusal(each.error_code, f"topic {each.name}", each.error_message)


def _all_topics(keys: Sequence[str], version: int) -> MetadataRequest:
    return MetadataRequest(topics=None if version else (), allow_auto_topic_creation=False)


def _some_topics(names: Sequence[str], version: int) -> MetadataRequest:
    rows = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=rows, allow_auto_topic_creation=version < 4)


def _listed(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, list[TopicListing] | KafkaError]]:
    topics = [
        TopicListing(each.name, each.topic_id, each.is_internal)
        for each in response.topics
        if not each.error_code
    ]
    yield _ALL, refusal(response.error_code, "the list of topics") or sorted(topics)


def _described(response: Any, names: Sequence[str]) -> Iterator[tuple[str, TopicDescription | KafkaError]]:
    for each in response.topics:
        error = refusal(each.error_code, f"topic {each.name}")
        yield each.name, error or _description(each)


def _description(topic: Any) -> TopicDescription:

    partitions = [
        PartitionDescription(
            each.partition_index,
            each.leader_id if each.leader_id >= 0 else None,
            each.leader_epoch,
            each.replica_nodes,
            each.isr_nodes,
            each.offline_replicas,
        )
        for each in topic.partitions
    ]
    return TopicDescription(topic.name, topic.topic_id, topic.is_internal, tuple(sorted(partitions)))
