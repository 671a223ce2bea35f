"""``CoordinatorTopic``: the logs of a coordinator's topic, for its runtime (``TopicLog``)."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

from txnkafka._core.encode import encode_batch
from txnkafka.error_codes import ErrorCode
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
    from collections.abc import Callable, Sequence

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.runtime import Runtime
    from txnkafka.model import ProducerIdAndEpoch
    from txnkafka.storage.log.partition_log import PartitionLog

LOG = logging.getLogger("txnkafka.broker")


class CoordinatorTopic:
    """The topic ``name``. ``has_answers``: its records with values answer clients, which get the error
    of a refused append. Other refusals for size are logged, once for each log and limit: the coordinator
    repeats these appends."""

    def __init__(
        self, services: Services, name: str, create_internal: Callable[[str], None], *, has_answers: bool
    ) -> None:
        self._services = services
        self._create_internal = create_internal
        self.name = name
        self._has_answers = has_answers
        self._refusals: dict[TopicPartition, int] = {}  # the limit of the last logged refusal
        self.partition = cache(lambda number: TopicPartition(name, number))

    def load(self, runtime: Runtime[Any], load: Callable[[int, PartitionLog], None]) -> None:
        """Call ``load`` with each open log of the topic that is not loaded: the log of a loaded partition may
        end with records that are not durable. A log that cannot be read is not coordinated: its ids and
        groups answer NOT_COORDINATOR. Raises errors that concern more than one log."""
        topic = self._services.image.topics.get(self.name)
        if topic is None:
            return
        runtime.count = len(topic.partitions)
        for number in sorted(topic.partitions):
            log = self._services.logs.get(self.partition(number))
            if log is None or number in runtime.loaded:
                continue
            try:
                load(number, log)
            except (KafkaError, OSError) as error:
                if not concerns_one_partition(error):
                    raise
                LOG.error("%s is not coordinated, its log cannot be read: %s", log.topic_partition, error)

    def find(self, runtime: Runtime[Any], key: str) -> ErrorCode:
        """Return NONE if this node coordinates the key. The first call creates the topic; calls before the
        topic exists return COORDINATOR_NOT_AVAILABLE, as in ``KafkaApis``."""
        if self.name not in self._services.image.topics:
            self._create_internal(self.name)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        is_here = runtime.state_of(key) is not None
        return ErrorCode.NONE if is_here else ErrorCode.COORDINATOR_NOT_AVAILABLE

    # TopicLog

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        call: Callable[[ErrorCode], None],
        *,
        producer: ProducerIdAndEpoch | None = None,
        is_awaited: bool = True,
    ) -> int:
        """Append one batch to a partition of the topic. Raises KafkaStorageError also if a file of the log
        cannot be read."""
        services, now_ms = self._services, self._services.now_ms
        log = services.logs.get(self.partition(partition))
        if log is None:
            raise KafkaStorageError(f"{self.partition(partition)} is not open on this node")
        stamped = [(key, value, now_ms) for key, value in records]
        if producer is None:
            batch, guard = encode_batch(stamped), NO_GUARD
        else:
            batch = encode_batch(
                stamped, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch,
                base_sequence=0, transactional=True,
            )  # fmt: skip
            pending = log.verification.pending(producer.producer_id)
            guard = NO_GUARD if pending is None else pending.guard
        try:
            info = log.append(
                batch, now_ms=now_ms, leader_epoch=services.leader_epoch(log.topic_partition),
                origin=AppendOrigin.COORDINATOR, guard=guard,
            )  # fmt: skip
        except LogDirError as error:  # clients try again
            raise KafkaStorageError(str(error)) from error
        except (MessageTooLargeError, RecordListTooLargeError) as error:
            if not (self._has_answers and any(value is not None for _, value in records)):
                self._note(log, error)
            raise
        services.durability.when_durable(log, call, is_awaited=is_awaited)
        return info.first_offset

    def max_batch_bytes(self, partition: int) -> int:
        """Return the size of the largest batch that the log accepts now, as ``AbstractLog.config`` in Kafka;
        a log that is not open refuses all."""
        log = self._services.logs.get(self.partition(partition))
        if log is None:
            return self._services.config.message_max_bytes
        return min(log.config.max_message_bytes, log.config.segment_bytes)

    def when_durable(self, partition: int, call: Callable[[ErrorCode], None]) -> None:
        """Call when all appends to the partition so far are durable, or never will be."""
        log = self._services.logs.get(self.partition(partition))
        if log is None:
            self._services.durability.soon(call, ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            self._services.durability.when_durable(log, call)

    def _note(self, log: PartitionLog, error: KafkaError) -> None:
        partition, limit = log.topic_partition, log.config.max_message_bytes
        if self._refusals.get(partition) != limit:
            self._refusals[partition] = limit
            LOG.error("%s refuses a record, which is tried again; raise its limit: %s", partition, error)


def log_of(services: Services, partition: TopicPartition) -> PartitionLog:
    """Return the log of a coordinator's partition. Raises KafkaStorageError if it is not open."""
    log = services.logs.get(partition)
    if log is None:
        raise KafkaStorageError(f"{partition} is not open on this node")
    return log
