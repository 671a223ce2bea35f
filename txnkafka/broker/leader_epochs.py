"""What a client's leader epoch says about its view of a partition (KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.model import TopicPartition

__all__ = ["leader_epoch_error"]


def leader_epoch_error(broker: Broker, partition: TopicPartition, current_leader_epoch: int) -> ErrorCode:
    """Why a request with this leader epoch (-1: it knows none) is not answered from the partition's log;
    NONE when it is."""
    if not broker.serves(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition not in broker.logs:
        return ErrorCode.KAFKA_STORAGE_ERROR
    epoch = broker.leader_epoch(partition)
    if current_leader_epoch < 0 or current_leader_epoch == epoch:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if current_leader_epoch < epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
