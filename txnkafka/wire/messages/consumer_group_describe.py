"""ConsumerGroupDescribe (key 69): state and members of groups of the consumer protocol (KIP-848).

By version:

1  kind of each member (KIP-1099)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int8, int16, int32, message, string, struct, uuid
from txnkafka.wire.schema import INT32, STRING


@message
class ConsumerGroupDescribeRequest:
    """``ConsumerGroupDescribeRequest.json``."""

    group_ids: tuple[str, ...] = array(STRING)
    include_authorized_operations: bool = boolean()


@message
class TopicPartitions:
    """An element of ``topic_partitions``."""

    topic_id: str = uuid()
    topic_name: str = string()
    partitions: tuple[int, ...] = array(INT32)


@message
class Assignment:
    """The struct ``assignment``."""

    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@message
class Member:
    """An element of ``members``."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(STRING)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    member_type: int = int8("1+", default=-1, ignorable=True)


@message
class DescribedGroup:
    """An element of ``groups``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[Member, ...] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


@message
class ConsumerGroupDescribeResponse:
    """``ConsumerGroupDescribeResponse.json``."""

    throttle_time_ms: int = int32()
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)
