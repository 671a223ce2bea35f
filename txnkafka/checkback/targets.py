"""Checks the topics of messages before a half is accepted, so that a failure comes before the local
transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka._core.key_partition import partition_of
from txnkafka.checkback.errors import DelayNotSupportedError, HalfTooLargeError
from txnkafka.client.admin.configs import ConfigResource, ConfigResourceType
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError, KafkaError, UnknownTopicOrPartitionError, error_for
from txnkafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.checkback.message import Message
    from txnkafka.client.admin.core import AdminCore
    from txnkafka.client.producer.producer_core import ProducerCore

_FIRST_WITH_OPERATIONS: Final = 8
_UNKNOWN_OPERATIONS: Final = -(1 << 31)
_WRITE: Final = 1 << 4
"""The bit of ``AclOperation.WRITE``."""
_SIZE: Final = "max.message.bytes"
_DEFAULT_SIZE: Final = 1_048_588


class Targets:
    """The topics that a producer sends to. Their settings are looked up once in ``metadata.max.age.ms``."""

    def __init__(self, producer: ProducerCore, admin: AdminCore) -> None:
        self._producer = producer
        self._admin = admin
        self._sizes: dict[str, tuple[int, int]] = {}  # largest batch, and the time of the look-up

    async def check(self, messages: Iterable[Message]) -> None:
        """Look up topics that are not known. Raises DelayNotSupportedError; InvalidTopicError for an internal
        topic; UnknownTopicOrPartitionError; TopicAuthorizationError."""
        for message in messages:
            if message.is_delayed:
                raise DelayNotSupportedError(
                    f"the message to {message.topic} has a delay, which a transactional message cannot have: "
                    "send a plain message with the delay after the commit instead"
                )
            if message.topic.startswith("__"):
                raise InvalidTopicError(f"{message.topic} is an internal topic: choose another one")
            await self._look_up(message.topic)
            count = self._producer.topics[message.topic].count
            if message.partition is not None and not 0 <= message.partition < count:
                raise UnknownTopicOrPartitionError(
                    f"{message.topic} has no partition {message.partition}: it has 0 to {count - 1}"
                )

    def partition(self, message: Message) -> int:
        """Return the partition of a message whose topic was checked, as a producer chooses it."""
        if message.partition is not None:
            return message.partition
        topic = self._producer.topics[message.topic]
        key = message.key_bytes()
        return topic.sticky.number if key is None else partition_of(key, topic.count)

    def check_size(self, topic: str, size: int) -> None:
        """Raise HalfTooLargeError for a batch that the topic does not take."""
        largest = self._sizes[topic][0]
        if size > largest:
            raise HalfTooLargeError(
                f"the messages to {topic} have {size:,} bytes, and its max.message.bytes is {largest:,}"
            )

    async def _look_up(self, topic: str) -> None:
        producer = self._producer
        now_ms = producer.reactor.now_ms()
        known = self._sizes.get(topic)
        if known is not None and now_ms - known[1] < producer.config.metadata_max_age_ms:
            return
        await producer.partitions_for(topic)
        await self._authorize(topic)
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        try:
            found = await self._admin.describe_configs([resource], names=[_SIZE])
            size = int(found[resource][_SIZE].value or _DEFAULT_SIZE)
        except KafkaError as error:
            if error.retriable:
                raise
            size = _DEFAULT_SIZE  # a user that may write need not be allowed to read the settings
        self._sizes[topic] = size, now_ms

    async def _authorize(self, topic: str) -> None:
        """Raise TopicAuthorizationError unless the user of this client may write: the resolver, whose user
        may, writes the message."""
        cluster = self._producer.cluster
        connection = await cluster.any_connection()
        version = connection.versions.pick("Metadata", at_least=1)
        if version < _FIRST_WITH_OPERATIONS:
            return
        message = MetadataRequest(
            topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )  # fmt: skip
        (row,) = (await cluster.request(connection, "Metadata", version, message)).topics
        operations = row.topic_authorized_operations
        if operations != _UNKNOWN_OPERATIONS and not operations & _WRITE:
            raise error_for(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                f"{topic}: the user of this client may not write to the topic",
            )
