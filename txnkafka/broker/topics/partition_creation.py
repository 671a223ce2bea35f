"""Adds partitions to a topic: first in the registry, durably, then on the disk.

Source: ``ReplicationControlManager.createPartitions`` (KIP-195).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.broker.config.broker_config import MOST_PARTITIONS
from txnkafka.broker.durability import error_code
from txnkafka.broker.registry.registry_change import register
from txnkafka.broker.topics.internal_topics import COORDINATORS_TOPICS
from txnkafka.broker.topics.strays import set_aside
from txnkafka.coordinator.registry.cluster_image import TOPIC_RESOURCE
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.registry.cluster_image import TopicImage
    from txnkafka.storage.work import Work


class MorePartitions(NamedTuple):
    """A topic and its new number of partitions. ``assignments`` are the replicas of each new partition, if
    the client has chosen them."""

    name: str
    partition_count: int
    assignments: Sequence[Sequence[int]] | None = None


class _Room:
    """The number of partitions that a request may still create; the broker makes the records of all of
    them at once."""

    def __init__(self) -> None:
        self._left = MOST_PARTITIONS

    def take(self, count: int) -> bool:
        """Take this many partitions; return False if too few are left."""
        if count > self._left:
            return False
        self._left -= count
        return True


class EnlargedTopic(NamedTuple):
    """The result for a topic that was to be enlarged."""

    name: str
    error: ErrorCode
    message: str | None = None


def create_partitions(
    broker: Broker,
    topics: Sequence[MorePartitions],
    reply: Callable[[list[EnlargedTopic]], None],
    *,
    validate_only: bool = False,
) -> None:
    """Enlarge topics, each by itself; answer when all new partitions can be written to."""
    results: dict[int, EnlargedTopic] = {}

    def done(i: int, result: EnlargedTopic) -> None:
        results[i] = result
        if len(results) == len(topics):
            reply([results[i] for i in range(len(topics))])

    room = _Room()
    if not topics:
        reply([])
    for i, topic in enumerate(topics):
        _enlarge(broker, topic, room, partial(done, i), validate_only)


def _enlarge(
    broker: Broker,
    wanted: MorePartitions,
    room: _Room,
    reply: Callable[[EnlargedTopic], None],
    validate_only: bool,
) -> None:
    """Enlarge one topic, after its earlier changes have ended."""
    turn = broker.turns.of((TOPIC_RESOURCE, wanted.name))

    def done(error: ErrorCode, message: str | None = None) -> None:
        turn.end()
        reply(EnlargedTopic(wanted.name, error, message))

    def begin() -> None:
        topic = broker.image.topics.get(wanted.name)
        if topic is None:
            refused = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic {wanted.name} does not exist"
        else:
            refused = _refusal(broker, topic, wanted, room) or (ErrorCode.NONE, "")
        error, message = refused
        if topic is None or error != ErrorCode.NONE or validate_only:
            broker.durability.soon(lambda: done(error, message or None))
        else:
            _register(broker, topic, wanted.partition_count, done)

    turn.take(begin)


def _refusal(
    broker: Broker, topic: TopicImage, wanted: MorePartitions, room: _Room
) -> tuple[ErrorCode, str] | None:
    """Return the refusal of an enlargement, or None."""
    has, additional = len(topic.partitions), wanted.partition_count - len(topic.partitions)
    if topic.name in COORDINATORS_TOPICS:
        message = f"{topic.name} cannot be enlarged: ids are found by its number of partitions"
        return ErrorCode.INVALID_TOPIC_EXCEPTION, message
    if not additional:
        return ErrorCode.INVALID_PARTITIONS, f"Topic already has {has} partition(s)."
    if additional < 0:
        message = (
            f"The topic {topic.name} currently has {has} partition(s); {wanted.partition_count} would not be "
            "an increase."
        )
        return ErrorCode.INVALID_PARTITIONS, message
    if wanted.assignments is not None:
        if len(wanted.assignments) != additional:
            message = (
                f"Attempted to add {additional} additional partition(s), but only "
                f"{len(wanted.assignments)} assignment(s) were specified."
            )
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, message
        if any(list(nodes) != [broker.node_id] for nodes in wanted.assignments):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the only node has all replicas"
    if not room.take(additional):
        message = f"at most {MOST_PARTITIONS} partitions can be created by one request"
        return ErrorCode.POLICY_VIOLATION, message
    return None


def _register(
    broker: Broker, topic: TopicImage, count: int, done: Callable[[ErrorCode, str | None], None]
) -> None:
    numbers = range(len(topic.partitions), count)
    records = [broker.topics.partition_record(topic.topic_id, number) for number in numbers]
    partitions = {TopicPartition(topic.name, number): topic.topic_id for number in numbers}

    def registered(error: ErrorCode, message: str | None) -> None:
        if error != ErrorCode.NONE:
            done(error, message)
            return
        broker.jobs.add(partial(_creation, broker, partitions), created)

    def created(failed: Exception | None) -> None:
        if failed is None:
            done(ErrorCode.NONE, None)
        else:
            broker.topics.missing_logs.creation_failed()
            done(error_code(failed), str(failed))

    def nothing_in_the_way(error: Exception | None) -> None:
        if error is None:
            register(broker.services, records, registered)
        else:
            done(error_code(error), str(error))

    set_aside(broker.services, partitions, nothing_in_the_way)


def _creation(broker: Broker, partitions: dict[TopicPartition, str]) -> Work | None:
    """Return the work that makes the missing directories; None if another attempt has made them."""
    missing = {partition: partitions[partition] for partition in partitions if partition not in broker.logs}
    return broker.data.creation(missing, now_ms=broker.now_ms) if missing else None
