"""ConsumerGroupDescribe: state and members of groups of the consumer protocol (KIP-848).

Versions 0 and 1. From 1 on members have a type: 0 for members of the classic protocol (KIP-1099).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.coordinator.group.described_groups import DescribedConsumerGroup, DescribedConsumerMember
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.server.handlers.metadata import ALL_OF_GROUP
from txnkafka.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

_NOT_ASKED: Final = -(1 << 31)


@serves("ConsumerGroupDescribe")
def handle(
    broker: Broker, request: ConsumerGroupDescribeRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer when the described state is durable. A group that is named twice is described once."""
    group_ids = list(dict.fromkeys(request.group_ids))
    operations = ALL_OF_GROUP if request.include_authorized_operations else _NOT_ASKED

    def described(groups: Sequence[DescribedConsumerGroup]) -> None:
        shown = tuple(_group(broker, group, operations) for group in groups)
        reply(ConsumerGroupDescribeResponse(groups=shown))

    if broker.groups.has_consumer_protocol:
        broker.groups.describe_consumer(group_ids, described)
    else:
        unsupported = ErrorCode.UNSUPPORTED_VERSION
        described([DescribedConsumerGroup(group_id, unsupported) for group_id in group_ids])


def _group(broker: Broker, group: DescribedConsumerGroup, operations: int) -> DescribedGroup:
    return DescribedGroup(
        error_code=group.error,
        error_message=group.message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=tuple(_member(broker, member) for member in group.members),
        authorized_operations=_NOT_ASKED if group.error else operations,
    )


def _member(broker: Broker, described: DescribedConsumerMember) -> Member:
    member = described.member
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.regex,
        assignment=_assignment(broker, described.assigned),
        target_assignment=_assignment(broker, described.target),
        member_type=1 if member.classic is None else 0,
    )


def _assignment(broker: Broker, partitions: Mapping[str, Sequence[int]]) -> Assignment:
    names = broker.image.topic_names
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, topic_name=names.get(topic_id, ""), partitions=tuple(numbers))
            for topic_id, numbers in partitions.items()
        )
    )
