"""Deletes a topic: first in the registry, durably, then on the disk.

Source: ``ReplicationControlManager.deleteTopics``, ``LogManager.asyncDelete``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from txnkafka.broker.registry.registry_change import register
from txnkafka.broker.requests import DeletedTopic
from txnkafka.broker.topics.internal_topics import COORDINATORS_TOPICS
from txnkafka.broker.topics.strays import has_files
from txnkafka.coordinator.registry import metadata_records
from txnkafka.coordinator.registry.cluster_image import TOPIC_RESOURCE
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.registry.cluster_image import TopicImage

LOG = logging.getLogger("txnkafka.broker")


class TopicDeletion:
    """Deletes topics. ``is_in_creation`` checks a topic's name; ``on_deleted`` gets the name and the
    partitions of a deleted topic before its logs are removed."""

    def __init__(
        self,
        services: Services,
        is_in_creation: Callable[[str], bool],
        on_deleted: Callable[[str, Collection[int]], None],
    ) -> None:
        self._services = services
        self._is_in_creation = is_in_creation
        self._on_deleted = on_deleted

    def delete(self, name: str | None, topic_id: str | None, reply: Callable[[DeletedTopic], None]) -> None:
        """Delete the topic ``name``; ``topic_id`` is not None if the client has named it by id. Answers when
        the registry change is durable."""
        services = self._services
        turn = services.turns.of((TOPIC_RESOURCE, name or ""))

        def done(result: DeletedTopic) -> None:
            turn.end()
            reply(result)

        def begin() -> None:
            refused = self._refusal(name, topic_id)
            topic = services.image.topics.get(name or "")
            if refused is not None or topic is None:
                result = refused or DeletedTopic(name, topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                services.durability.soon(lambda: done(result))
            else:
                self._delete(topic, done)

        turn.take(begin)

    def _refusal(self, name: str | None, topic_id: str | None) -> DeletedTopic | None:
        if not self._services.config.delete_topic_enable:
            return DeletedTopic(name, topic_id, ErrorCode.TOPIC_DELETION_DISABLED)
        topic = None if name is None else self._services.image.topics.get(name)
        if topic_id is not None and (topic is None or topic.topic_id != topic_id):
            return DeletedTopic(name, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        if topic is None or self._is_in_creation(topic.name):
            return DeletedTopic(name, topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic.name in COORDINATORS_TOPICS:
            message = f"Topic '{name}' has the state of this broker's coordinators, and cannot be deleted."
            return DeletedTopic(name, topic_id, ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        return None

    def _delete(self, topic: TopicImage, done: Callable[[DeletedTopic], None]) -> None:
        record = metadata_records.remove_topic(topic.topic_id)
        deleted = DeletedTopic(topic.name, topic.topic_id, ErrorCode.NONE)

        def registered(error: ErrorCode, message: str | None) -> None:
            if error == ErrorCode.NONE:
                try:
                    self._on_deleted(topic.name, topic.partitions)
                finally:
                    for number in topic.partitions:
                        self._remove(TopicPartition(topic.name, number))
            done(deleted._replace(error=error, message=message))

        register(self._services, [record], registered)

    def _remove(self, partition: TopicPartition) -> None:
        """Stop serving a partition, and schedule the deletion of its files."""
        services = self._services
        services.data.retire(partition)  # at once: the next topic of this name must not get its records
        services.jobs.add(
            lambda: services.manager.deletion(partition) if has_files(services, partition) else None,
            partial(_removed, partition),
        )


def _removed(partition: TopicPartition, error: Exception | None) -> None:
    if error is not None:
        LOG.error("%s could not be deleted: %s", partition, error)
