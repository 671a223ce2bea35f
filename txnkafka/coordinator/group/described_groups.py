"""Descriptions of groups: for ListGroups, DescribeGroups (classic groups only) and ConsumerGroupDescribe.

Source: GroupMetadataManager.describeGroups and consumerGroupDescribe, ConsumerGroup.asDescribedGroup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from txnkafka.coordinator.group.classic.classic_group import CONSUMER, GroupState
from txnkafka.coordinator.group.consumer.consumer_config import ConsumerGroupConfig
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember, Target
from txnkafka.coordinator.group.group_partition import AnyGroup
from txnkafka.coordinator.group.group_requests import DescribedGroup, DescribedMember, ListedGroup
from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.error_codes import ErrorCode

E = ErrorCode


class DescribedConsumerMember(NamedTuple):
    """A described member: ``assigned`` are its partitions, including those to revoke; ``target`` is its
    target assignment. Both by topic id, for existing topics."""

    member: ConsumerMember
    assigned: Target
    target: Target


class DescribedConsumerGroup(NamedTuple):
    """A described consumer group, or an error."""

    group_id: str
    error: ErrorCode = E.NONE
    message: str | None = None
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: Sequence[DescribedConsumerMember] = ()


def listed(group: AnyGroup) -> ListedGroup:
    """Return the row of a group in ListGroups."""
    if isinstance(group, ConsumerGroup):
        return ListedGroup(group.group_id, CONSUMER, group.state, "consumer")
    return ListedGroup(group.group_id, group.protocol_type or "", group.state.value, "classic")


def describe_classic(group: AnyGroup | ErrorCode, group_id: str) -> DescribedGroup:
    """Return the description of a classic group; member metadata is included while the group is stable."""
    if isinstance(group, ErrorCode):
        message = f"Group {group_id} not found." if group == E.GROUP_ID_NOT_FOUND else None
        return DescribedGroup(group, message=message)
    if isinstance(group, ConsumerGroup):
        return DescribedGroup(E.GROUP_ID_NOT_FOUND, message=f"Group {group_id} is not a classic group.")
    is_stable = group.state is GroupState.STABLE
    members = []
    for member in group.members.values():
        metadata = member.metadata(group.protocol) if is_stable else b""
        identity = member.member_id, member.group_instance_id, member.client_id, member.client_host
        members.append(DescribedMember(*identity, metadata, member.assignment))
    protocol = group.protocol if is_stable else None
    return DescribedGroup(E.NONE, group.state.value, group.protocol_type or "", protocol or "", members)


def describe_consumer(
    group: AnyGroup | ErrorCode, group_id: str, image: ClusterImage, config: ConsumerGroupConfig
) -> DescribedConsumerGroup:
    """Return the description of a consumer group."""
    if isinstance(group, ErrorCode):
        message = f"Group {group_id} not found." if group == E.GROUP_ID_NOT_FOUND else None
        return DescribedConsumerGroup(group_id, group, message)
    if not isinstance(group, ConsumerGroup):
        message = f"Group {group_id} is not a consumer group."
        return DescribedConsumerGroup(group_id, E.GROUP_ID_NOT_FOUND, message)
    members = [
        DescribedConsumerMember(
            member,
            _existing(_united(member), image),
            _existing(group.targets.get(member_id, {}), image),
        )
        for member_id, member in group.members.items()
    ]
    assignor = group.assignor(config.assignors)
    return DescribedConsumerGroup(
        group_id, E.NONE, None, group.state, group.epoch, group.assignment_epoch, assignor, members
    )


def _united(member: ConsumerMember) -> Target:
    found: dict[str, list[int]] = {}
    for owned in (member.assigned, member.revoking):
        for topic_id, partitions in owned.items():
            found.setdefault(topic_id, []).extend(partitions)
    return {topic_id: sorted(numbers) for topic_id, numbers in found.items()}


def _existing(partitions: Mapping[str, Sequence[int]], image: ClusterImage) -> Target:
    known = image.topic_names
    return {topic_id: partitions[topic_id] for topic_id in sorted(partitions) if topic_id in known}
