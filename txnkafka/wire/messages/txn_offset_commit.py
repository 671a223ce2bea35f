"""TxnOffsetCommit (key 28): offsets of a consumer group that count when the transaction commits.

By version:

2  committed leader epoch (KIP-320)
3  flexible; member and generation, which fence (KIP-447)
4  TRANSACTION_ABORTABLE (KIP-890)
5  adds the group to the transaction (KIP-890, ``transaction.version`` 2)
6  topics have ids; GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH, UNKNOWN_TOPIC_ID (KIP-1319)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string, uuid


@message
class TxnOffsetCommitRequestPartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


@message
class TxnOffsetCommitRequestTopic:
    """An element of ``topics``."""

    name: str = string("0-5", ignorable=True)
    topic_id: str = uuid("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = array(TxnOffsetCommitRequestPartition)


@message
class TxnOffsetCommitRequest:
    """``TxnOffsetCommitRequest.json``."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id_or_member_epoch: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="0+", default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = array(TxnOffsetCommitRequestTopic)


@message
class TxnOffsetCommitResponsePartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()


@message
class TxnOffsetCommitResponseTopic:
    """An element of ``topics``."""

    name: str = string("0-5", ignorable=True)
    topic_id: str = uuid("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = array(TxnOffsetCommitResponsePartition)


@message
class TxnOffsetCommitResponse:
    """``TxnOffsetCommitResponse.json``."""

    throttle_time_ms: int = int32()
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = array(TxnOffsetCommitResponseTopic)
