"""DeleteRecords: moves the start of logs, durably.

Source: ``ReplicaManager.deleteRecords``, ``UnifiedLog.maybeIncrementLogStartOffset`` (KIP-107).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.broker.durability import error_code
from txnkafka.broker.topics.internal_topics import COORDINATORS_TOPICS
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.model import TopicPartition
    from txnkafka.storage.work import Work


class Deleted(NamedTuple):
    """The result for one partition, with its new log start."""

    error: ErrorCode
    low_watermark: int = -1


def delete_records(
    broker: Broker,
    offsets: Mapping[TopicPartition, int],
    reply: Callable[[dict[TopicPartition, Deleted]], None],
) -> None:
    """Delete the records below an offset of each partition; -1 means its high watermark. Answers when all
    log starts are durable. A partition that must keep its records (internal, or only compacted) is
    refused; the others continue."""
    results: dict[TopicPartition, Deleted] = {}

    def decide(partition: TopicPartition, deleted: Deleted) -> None:
        results[partition] = deleted
        if len(results) == len(offsets):
            reply(results)

    if not offsets:
        reply(results)
    for partition, offset in offsets.items():
        refused = _refusal(broker, partition)
        if refused is not None:
            decide(partition, Deleted(refused))
            continue
        begin = partial(_begin, broker, partition, offset)
        broker.jobs.add(begin, partial(_done, broker, partition, decide))


def _refusal(broker: Broker, partition: TopicPartition) -> ErrorCode | None:
    if partition.topic in COORDINATORS_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not broker.serves(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    log = broker.logs.get(partition)
    if log is None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    is_only_compacted = log.config.compact and not log.config.delete  # an empty policy is neither
    return ErrorCode.POLICY_VIOLATION if is_only_compacted else None


def _begin(broker: Broker, partition: TopicPartition, offset: int) -> Work | None:
    """Return the work that makes the new start durable; None if it already is. Raises KafkaError."""
    if partition not in broker.logs:  # the topic was deleted while this waited
        return None
    return broker.data.records_deletion(partition, offset)[1]


def _done(
    broker: Broker,
    partition: TopicPartition,
    decide: Callable[[TopicPartition, Deleted], None],
    error: Exception | None,
) -> None:
    log = broker.logs.get(partition)
    if error is not None:
        decide(partition, Deleted(error_code(error)))
    elif log is None:
        decide(partition, Deleted(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    else:
        decide(partition, Deleted(ErrorCode.NONE, log.log_start_offset))
        broker.fetches.on_progress([partition])  # requests may wait below the new start
