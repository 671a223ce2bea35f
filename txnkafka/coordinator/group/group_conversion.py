"""Conversion of a classic group to a consumer group, with its members and partitions, and back.

Source: GroupMetadataManager.validateOnlineUpgrade, ConsumerGroup.fromClassicGroup,
ClassicGroup.fromConsumerGroup (KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from txnkafka.coordinator.group.classic.classic_group import CONSUMER, ClassicGroup, GroupState
from txnkafka.coordinator.group.classic.classic_group import Member as ClassicGroupMember
from txnkafka.coordinator.group.consumer.consumer_config import ConsumerGroupConfig
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import ClassicMember, ConsumerMember, Target
from txnkafka.coordinator.group.consumer.member_update import hash_of
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records.consumer_protocol import decode_assignment, decode_subscription, encode_assignment

E = ErrorCode


def consumer_of(group: ClassicGroup, image: ClusterImage, config: ConsumerGroupConfig) -> ConsumerGroup:
    """Return the consumer group for a classic group with members. Raises GroupError if it cannot be
    converted."""
    _check(group, config)
    if group.protocol is None:
        raise GroupError(E.UNKNOWN_SERVER_ERROR, "The group has no protocol yet.")
    found = ConsumerGroup(group.group_id)
    found.epoch = found.assignment_epoch = group.generation
    for member in group.members.values():
        target = _target(group, member, image)
        subscription = decode_subscription(member.metadata(group.protocol))
        if subscription is None:
            raise _malformed(group)
        found.targets[member.member_id] = target
        epochs = {topic_id: dict.fromkeys(numbers, group.generation) for topic_id, numbers in target.items()}
        found.put(
            ConsumerMember(
                member.member_id, group.generation, group.generation,
                instance_id=member.group_instance_id,
                rack_id=subscription.get("rack_id") or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=tuple(sorted(set(subscription["topics"]))),
                assigned=epochs,
                classic=ClassicMember(member.session_timeout_ms, tuple(member.protocols)),
            )
        )  # fmt: skip
    found.metadata_hash = hash_of(found.subscriptions(), image)
    return found


def _check(group: ClassicGroup, config: ConsumerGroupConfig) -> None:
    reason = None
    if not config.migration_policy.may_upgrade:
        reason = "online upgrade is disabled"
    elif group.protocol_type != CONSUMER:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > config.max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        raise _refused(group, f" because {reason}.")


def _refused(group: ClassicGroup, reason: str) -> GroupError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group{reason}"
    return GroupError(E.GROUP_ID_NOT_FOUND, text)


def _malformed(group: ClassicGroup) -> GroupError:
    return _refused(group, " because the embedded consumer protocol is malformed.")


def _target(group: ClassicGroup, member: ClassicGroupMember, image: ClusterImage) -> Target:
    """Return the existing partitions of a client's last assignment. Raises GroupError if it is malformed."""
    if not member.assignment:
        return {}
    fields = decode_assignment(member.assignment)
    if fields is None:
        raise _malformed(group)
    if fields["user_data"]:
        raise _refused(
            group,
            " because an unsupported custom assignor is in use. Please refer to the documentation or switch "
            "to a default assignor before re-attempting the upgrade.",
        )
    topics = ((image.topics.get(each["topic"]), each["partitions"]) for each in fields["assigned_partitions"])
    return {
        topic.topic_id: tuple(sorted(topic.partitions.keys() & numbers)) for topic, numbers in topics if topic
    }


def classic_of(
    group: ConsumerGroup,
    members: Iterable[ConsumerMember],
    targets: Mapping[str, Target],
    image: ClusterImage,
    now_ms: int,
) -> ClassicGroup:
    """Return the stable classic group for a consumer group with these members, who all use the classic
    protocol."""
    found = ClassicGroup(group.group_id, now_ms)
    found.generation = group.epoch
    found.become(GroupState.STABLE, now_ms)
    for each in members:
        classic = each.classic
        if classic is None:
            raise ValueError(f"member {each.member_id} does not use the classic protocol")
        member = ClassicGroupMember(
            each.member_id, each.instance_id, each.client_id, each.client_host, each.rebalance_timeout_ms,
            classic.session_timeout_ms, classic.protocols, is_new=False,
        )  # fmt: skip
        found.add(member, CONSUMER)
    found.protocol = found.voted()
    for member in found.members.values():
        metadata = member.metadata(found.protocol)
        member.assignment = assignment_of(targets.get(member.member_id, {}), metadata, image)
    return found


def assignment_of(target: Mapping[str, Iterable[int]], metadata: bytes, image: ClusterImage) -> bytes:
    """Return the assignment encoded for the embedded protocol, in the version of the member's
    subscription."""
    names = {image.topic_names[topic_id]: sorted(numbers) for topic_id, numbers in target.items()
             if topic_id in image.topic_names}  # fmt: skip
    return encode_assignment(sorted(names.items()), int.from_bytes(metadata[:2], "big", signed=True))
