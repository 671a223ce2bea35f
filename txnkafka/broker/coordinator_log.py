"""What coordinators do with their logs: load them, append records."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.errors import (
    KafkaError,
    KafkaStorageError,
    LogDirError,
    MessageTooLargeError,
    RecordListTooLargeError,
)
from txnkafka.model import TopicPartition
from txnkafka.storage.formats.partition_names import concerns_one_partition
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from txnkafka.broker.broker import Broker
    from txnkafka.storage.log.append_info import AppendInfo
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["TooLarge", "append_record_batch", "load_each", "log_of", "max_batch_bytes"]

LOG = logging.getLogger("txnkafka.broker")


def load_each(
    broker: Broker, topic: str, loaded: Container[int], load: Callable[[int, PartitionLog], None]
) -> None:
    """Call ``load`` with the open logs of a coordinator's topic that are not loaded. One that cannot be read
    is not coordinated: its ids and groups answer NOT_COORDINATOR. Raises what concerns more than one log."""
    found = broker.image.topics.get(topic)
    for number in sorted(found.partitions) if found is not None else ():
        log = broker.logs.get(TopicPartition(topic, number))
        if log is None or number in loaded:
            continue
        try:
            load(number, log)
        except (KafkaError, OSError) as error:
            if not concerns_one_partition(error):
                raise
            LOG.error("%s is not coordinated, its log cannot be read: %s", log.topic_partition, error)


def log_of(broker: Broker, partition: TopicPartition) -> PartitionLog:
    """The log of a coordinator's partition. Raises KafkaStorageError when it is not open."""
    log = broker.logs.get(partition)
    if log is None:
        raise KafkaStorageError(f"{partition} is not here")
    return log


def max_batch_bytes(broker: Broker, partition: TopicPartition) -> int:
    """The largest batch that the log of a coordinator's partition takes now, as
    ``AbstractLog.config.maxMessageSize`` in Kafka; a log that is not open refuses all."""
    log = broker.logs.get(partition)
    if log is None:
        return broker.config.message_max_bytes
    return min(log.config.max_message_bytes, log.config.segment_bytes)


class TooLarge:
    """Logs that a coordinator's log has refused a batch for its size. What no client waits for is tried again
    for as long as the limit is the same: so it is said once for each log and limit."""

    def __init__(self) -> None:
        self._said: dict[TopicPartition, int] = {}  # with which limit

    def note(self, log: PartitionLog, error: KafkaError) -> None:
        """An append was refused."""
        partition, limit = log.topic_partition, log.config.max_message_bytes
        if self._said.get(partition) != limit:
            self._said[partition] = limit
            LOG.error("%s refuses a record, which is tried again; raise its limit: %s", partition, error)


def append_record_batch(
    broker: Broker,
    log: PartitionLog,
    batch: bytearray,
    *,
    guard: int = NO_GUARD,
    too_large: TooLarge | None = None,
) -> AppendInfo:
    """Append a batch of records; ``too_large`` notes a refusal of which no client may hear. Raises
    KafkaError; KafkaStorageError, upon which clients try again, also when a file of the log cannot be
    read."""
    try:
        return log.append(
            batch, now_ms=broker.now_ms, leader_epoch=broker.leader_epoch(log.topic_partition),
            origin=AppendOrigin.COORDINATOR, guard=guard,
        )  # fmt: skip
    except LogDirError as error:
        raise KafkaStorageError(str(error)) from error
    except (MessageTooLargeError, RecordListTooLargeError) as error:
        if too_large is not None:
            too_large.note(log, error)
        raise
