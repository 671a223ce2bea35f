"""ConsumerGroupHeartbeat (key 68): membership and assignment in a group of the consumer protocol (KIP-848).

By version:

1  subscription by a regular expression
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string, struct, uuid
from txnkafka.wire.schema import INT32, STRING


@message
class TopicPartitions:
    """An element of ``topic_partitions``."""

    topic_id: str = uuid()
    partitions: tuple[int, ...] = array(INT32)


@message
class ConsumerGroupHeartbeatRequest:
    """``ConsumerGroupHeartbeatRequest.json``."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: tuple[str, ...] | None = array(STRING, nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="0+", default=None)
    server_assignor: str | None = string(nullable="0+", default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = array(TopicPartitions, nullable="0+", default=None)


@message
class Assignment:
    """The struct ``assignment``."""

    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@message
class ConsumerGroupHeartbeatResponse:
    """``ConsumerGroupHeartbeatResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable="0+", default=None)
