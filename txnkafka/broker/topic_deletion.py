"""Deletes a topic: first in the registry, durably, then on the disk.

Source: ``ReplicationControlManager.deleteTopics``, ``LogManager.asyncDelete``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from txnkafka.broker.internal_topics import COORDINATORS_TOPICS
from txnkafka.broker.registry_change import register
from txnkafka.broker.requests import DeletedTopic
from txnkafka.broker.strays import has_files
from txnkafka.coordinator import metadata_records
from txnkafka.coordinator.cluster_image import TOPIC_RESOURCE
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.cluster_image import TopicImage

__all__ = ["delete_topic"]

LOG = logging.getLogger("txnkafka.broker")


def delete_topic(
    broker: Broker,
    name: str | None,
    topic_id: str | None,
    reply: Callable[[DeletedTopic], None],
) -> None:
    """Delete the topic ``name``; ``topic_id`` is not None if the client has named it by id. Answers when
    the registry change is durable.
    """
    turn = broker.turns.of((TOPIC_RESOURCE, name or ""))

    def done(result: DeletedTopic) -> None:
        turn.end()
        reply(result)

    def begin() -> None:
        refused = _refusal(broker, name, topic_id)
        topic = broker.image.topics.get(name or "")
        if refused is not None or topic is None:
            result = refused or DeletedTopic(name, topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            broker.durability.soon(lambda: done(result))
        else:
            _delete(broker, topic, done)

    turn.take(begin)


def _refusal(broker: Broker, name: str | None, topic_id: str | None) -> DeletedTopic | None:
    if not broker.config.delete_topic_enable:
        return DeletedTopic(name, topic_id, ErrorCode.TOPIC_DELETION_DISABLED)
    topic = None if name is None else broker.image.topics.get(name)
    if topic_id is not None and (topic is None or topic.topic_id != topic_id):
        return DeletedTopic(name, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    if topic is None or broker.topics.is_in_creation(topic.name):
        return DeletedTopic(name, topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.name in COORDINATORS_TOPICS:
        message = f"Topic '{name}' has the state of this broker's coordinators, and cannot be deleted."
        return DeletedTopic(name, topic_id, ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return None


def _delete(broker: Broker, topic: TopicImage, done: Callable[[DeletedTopic], None]) -> None:
    record = metadata_records.remove_topic(topic.topic_id)
    deleted = DeletedTopic(topic.name, topic.topic_id, ErrorCode.NONE)

    def registered(error: ErrorCode, message: str | None) -> None:
        if error == ErrorCode.NONE:
            for number in topic.partitions:
                _remove(broker, TopicPartition(topic.name, number))
            broker.groups.on_deleted(topic.name, topic.partitions)
        done(deleted._replace(error=error, message=message))

    register(broker, [record], registered)


def _remove(broker: Broker, partition: TopicPartition) -> None:
    """Stop serving a partition, and schedule the deletion of its files."""
    broker.fetches.on_progress([partition])
    broker.transactions.on_deleted(partition)
    broker.data.retire(partition)  # at once: the next topic of this name must not get its records
    broker.jobs.add(
        lambda: broker.manager.deletion(partition) if has_files(broker, partition) else None,
        partial(_removed, partition),
    )


def _removed(partition: TopicPartition, error: Exception | None) -> None:
    if error is not None:
        LOG.error("%s could not be deleted: %s", partition, error)
