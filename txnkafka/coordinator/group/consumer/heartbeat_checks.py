"""Checks that refuse heartbeats of consumer group members: invalid requests, and outdated epochs or
instances.

Source: GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid,
GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid and related methods.
"""

from __future__ import annotations

from collections.abc import Sequence

from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
)
from txnkafka.coordinator.group.consumer.member_reconciliation import Claimed
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat
from txnkafka.error_codes import ErrorCode

E = ErrorCode


def check_heartbeat(request: ConsumerHeartbeat, assignors: Sequence[str]) -> None:
    """Raise GroupError for an invalid request."""
    if request.has_own_id or request.epoch > 0 or request.epoch == LEAVING_EPOCH:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group_id, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    if request.epoch == JOINING_EPOCH:
        _check_join(request)
    elif request.epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        raise GroupError(E.INVALID_REQUEST, "InstanceId can't be null.")
    elif request.epoch < STATIC_LEAVING_EPOCH:
        raise GroupError(E.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.assignor is not None and request.assignor not in assignors:
        text = f"ServerAssignor {request.assignor} is not supported. Supported assignors: "
        raise GroupError(E.UNSUPPORTED_ASSIGNOR, text + ", ".join(assignors) + ".")


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise GroupError(E.INVALID_REQUEST, f"{name} can't be empty.")


def _check_join(request: ConsumerHeartbeat) -> None:
    text = None
    if request.rebalance_timeout_ms == -1:
        text = "RebalanceTimeoutMs must be provided in first request."
    elif request.owned is None or request.owned:
        text = "TopicPartitions must be empty when (re-)joining."
    elif request.topics is None and request.regex is None:
        text = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    if text is not None:
        raise GroupError(E.INVALID_REQUEST, text)


def check_room(group: ConsumerGroup, member_id: str, most: int) -> None:
    """Raise GroupError for a new member of a full group."""
    if len(group.members) >= most and member_id not in group.members:
        text = f"The consumer group has reached its maximum capacity of {most} members."
        raise GroupError(E.GROUP_MAX_SIZE_REACHED, text)


def check_epoch(member: ConsumerMember, epoch: int, claimed: Claimed) -> None:
    """Raise GroupError for a member with another epoch.

    The previous epoch is accepted if the member claims only partitions that it also owns in the current one,
    because the answer with the current epoch may have been lost."""
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    kind = "greater" if epoch > member.epoch else "smaller"
    if epoch < member.epoch and epoch == member.previous_epoch and _are_assigned(claimed, member):
        return
    raise GroupError(
        E.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {kind} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _are_assigned(claimed: Claimed, member: ConsumerMember) -> bool:
    if claimed is None:
        return False
    return all(
        topic_id in member.assigned and all(number in member.assigned[topic_id] for number in numbers)
        for topic_id, numbers in claimed.items()
    )


def known_instance(group: ConsumerGroup, instance_id: str) -> ConsumerMember:
    """Return the member of an instance id. Raises GroupError for an unknown one."""
    member = group.static_member(instance_id)
    if member is None:
        raise GroupError(E.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return member


def check_instance(member: ConsumerMember, member_id: str) -> None:
    """Raise GroupError for an instance that another member has replaced."""
    if member.member_id != member_id:
        raise GroupError(
            E.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} was fenced by member "
            f"{member.member_id}.",
        )


def check_released(member: ConsumerMember, member_id: str) -> None:
    """Raise GroupError for an instance id whose member has not left."""
    if member.epoch != STATIC_LEAVING_EPOCH:
        raise GroupError(
            E.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} cannot join the group because "
            f"the instance id is owned by {member.member_id} member.",
        )
