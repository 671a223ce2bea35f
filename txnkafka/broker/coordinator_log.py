"""What coordinators do with their logs: load them, append records."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.errors import KafkaError, KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.formats.partition_names import concerns_one_partition
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from txnkafka.broker.broker import Broker
    from txnkafka.storage.log.append_info import AppendInfo
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["append_record_batch", "load_each", "log_of"]

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


def append_record_batch(
    broker: Broker, log: PartitionLog, batch: bytearray, *, guard: int = NO_GUARD
) -> AppendInfo:
    """Append a batch of records. Raises KafkaError; KafkaStorageError, upon which clients try again, also
    when a file of the log cannot be read."""
    try:
        return log.append(
            batch, now_ms=broker.now_ms, leader_epoch=broker.leader_epoch(log.topic_partition),
            origin=AppendOrigin.COORDINATOR, guard=guard,
        )  # fmt: skip
    except LogDirError as error:
        raise KafkaStorageError(str(error)) from error
