"""ListOffsets, OffsetForLeaderEpoch and DescribeProducers: facts about logs.

Source: ``UnifiedLog.fetchOffsetByTimestamp``, ``Partition.lastOffsetForLeaderEpoch``,
``ReplicaManager.activeProducerState``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from txnkafka.broker.durability import error_code
from txnkafka.broker.registry.leader_epochs import leader_epoch_error
from txnkafka.broker.requests import OffsetAnswer
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.timestamp_lookup import find_by_timestamp, find_newest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.requests import OffsetQuery
    from txnkafka.broker.services import Services
    from txnkafka.model import ProducerStateEntry
    from txnkafka.storage.log.partition_log import PartitionLog

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
WITHOUT_TIERS: Final = (-5, -6)  # latest tiered, earliest pending upload


def list_offsets(
    services: Services, queries: Sequence[OffsetQuery], isolation_level: IsolationLevel
) -> dict[TopicPartition, OffsetAnswer]:
    """Return the answers by partition; a partition that is named twice is refused, as in Kafka."""
    asked = Counter(query.topic_partition for query in queries)
    answers = {}
    for query in queries:
        partition = query.topic_partition
        error = leader_epoch_error(services, partition, query.current_leader_epoch)
        if asked[partition] > 1:
            error = ErrorCode.INVALID_REQUEST
        if error != ErrorCode.NONE:
            answers[partition] = OffsetAnswer(error)
            continue
        try:
            answers[partition] = _offset(services, partition, query.timestamp, isolation_level)
        except (KafkaError, OSError) as raised:
            answers[partition] = OffsetAnswer(error_code(raised))
    return answers


def _offset(
    services: Services, partition: TopicPartition, timestamp: int, isolation_level: IsolationLevel
) -> OffsetAnswer:
    log = services.logs[partition]
    committed = isolation_level is IsolationLevel.READ_COMMITTED
    end = log.last_stable_offset if committed else log.high_watermark
    epoch = services.leader_epoch(partition)
    if timestamp == LATEST:
        return OffsetAnswer(offset=end, leader_epoch=epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return OffsetAnswer(offset=start, leader_epoch=_epochs(services, partition, log).epoch_of(start))
    if timestamp in WITHOUT_TIERS:
        return OffsetAnswer()
    if timestamp < MAX_TIMESTAMP:
        return OffsetAnswer(ErrorCode.UNSUPPORTED_VERSION)
    found = find_newest(log) if timestamp == MAX_TIMESTAMP else find_by_timestamp(log, timestamp)
    if found is None or found.offset >= end:
        return OffsetAnswer()
    return OffsetAnswer(ErrorCode.NONE, found.timestamp, found.offset, found.leader_epoch)


def _epochs(services: Services, partition: TopicPartition, log: PartitionLog) -> LeaderEpochs:
    """Return the leader epochs of a log with the current epoch, which Kafka adds to its log at the
    election, this broker with the first batch."""
    epochs = LeaderEpochs(log.epochs.entries)
    epochs.assign(services.leader_epoch(partition), log.log_end_offset)
    return epochs


def end_offset_for_epoch(
    services: Services, partition: TopicPartition, leader_epoch: int, current_leader_epoch: int
) -> tuple[ErrorCode, int, int]:
    """Return the largest epoch of the log at or below ``leader_epoch``, and its end offset."""
    error = leader_epoch_error(services, partition, current_leader_epoch)
    if error != ErrorCode.NONE:
        return error, -1, -1
    log = services.logs[partition]
    entries = _epochs(services, partition, log).entries
    if leader_epoch < 0:
        return ErrorCode.NONE, -1, -1
    if leader_epoch == entries[-1][0]:
        return ErrorCode.NONE, leader_epoch, log.log_end_offset
    if leader_epoch > entries[-1][0]:
        return ErrorCode.NONE, -1, -1
    below = [entry for entry in entries if entry[0] <= leader_epoch]
    above = next(entry for entry in entries if entry[0] > leader_epoch)
    return ErrorCode.NONE, below[-1][0] if below else leader_epoch, above[1]


def describe_producers(
    services: Services, partition: TopicPartition
) -> tuple[ErrorCode, list[ProducerStateEntry]]:
    """Return the producers of a partition, or an error."""
    error = leader_epoch_error(services, partition, -1)
    return error, [] if error != ErrorCode.NONE else services.logs[partition].producers.entries()
