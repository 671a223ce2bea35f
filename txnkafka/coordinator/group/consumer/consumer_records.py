"""Records of consumer groups: their encoding, and the change that an appended record makes.

Source: GroupCoordinatorRecordHelpers, GroupMetadataManager.replay, ConsumerGroup.createGroupTombstoneRecords
(KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import LEAVING_EPOCH, ConsumerMember, Target
from txnkafka.coordinator.group.consumer.subscriptions import ResolvedRegex
from txnkafka.wire.records.group_log import ConsumerRecordType, encode_consumer_record

Type = ConsumerRecordType
Record = tuple[bytes, bytes | None]


def member_record(group_id: str, member: ConsumerMember) -> Record:
    """Return the record of a member's metadata."""
    return encode_consumer_record(Type.MEMBER, group_id, member.member_id, member.metadata())


def assignment_record(group_id: str, member: ConsumerMember) -> Record:
    """Return the record of a member's epoch and partitions."""
    fields = member.assignment()
    return encode_consumer_record(Type.CURRENT_ASSIGNMENT, group_id, member.member_id, fields)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Return the record of a group's epoch and of the hash of its topics."""
    return encode_consumer_record(
        Type.GROUP, group_id, fields={"epoch": epoch, "metadata_hash": metadata_hash}
    )


def target_record(group_id: str, member_id: str, target: Target) -> Record:
    """Return the record of a member's target assignment."""
    partitions = [{"topic_id": each, "partitions": list(target[each])} for each in sorted(target)]
    fields = {"topic_partitions": partitions}
    return encode_consumer_record(Type.TARGET_ASSIGNMENT_MEMBER, group_id, member_id, fields)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> Record:
    """Return the record of the target epoch, and of the time of its computation."""
    fields = {"assignment_epoch": epoch, "assignment_timestamp": now_ms}
    return encode_consumer_record(Type.TARGET_ASSIGNMENT, group_id, fields=fields)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex | None) -> Record:
    """Return the record of the topics that a pattern matched; a tombstone for None, once the pattern has
    no subscriber."""
    fields = None
    if resolved is not None:
        topics, version, timestamp = resolved
        fields = {"topics": list(topics), "version": version, "timestamp": timestamp}
    return encode_consumer_record(Type.REGULAR_EXPRESSION, group_id, regex, fields)


def old_metadata_tombstone(group_id: str) -> Record:
    """Return the tombstone of the topic metadata that brokers before 4.1 wrote."""
    return encode_consumer_record(Type.PARTITION_METADATA, group_id)


def member_tombstones(group_id: str, member_id: str) -> Iterator[Record]:
    """Yield the tombstones that remove a member."""
    for kind in (Type.CURRENT_ASSIGNMENT, Type.TARGET_ASSIGNMENT_MEMBER, Type.MEMBER):
        yield encode_consumer_record(kind, group_id, member_id)


def group_tombstones(group: ConsumerGroup, member_ids: Iterable[str]) -> Iterator[Record]:
    """Yield the tombstones that remove a group with these members."""
    group_id, members = group.group_id, list(member_ids)
    for member_id in members:
        yield encode_consumer_record(Type.CURRENT_ASSIGNMENT, group_id, member_id)
    for member_id in members:
        yield encode_consumer_record(Type.TARGET_ASSIGNMENT_MEMBER, group_id, member_id)
    yield encode_consumer_record(Type.TARGET_ASSIGNMENT, group_id)
    for member_id in members:
        yield encode_consumer_record(Type.MEMBER, group_id, member_id)
    for regex in group.regexes:
        yield regex_record(group_id, regex, None)
    yield old_metadata_tombstone(group_id)
    yield encode_consumer_record(Type.GROUP, group_id)


def group_records(group: ConsumerGroup) -> Iterator[Record]:
    """Yield all records of a group that was converted from a classic one."""
    group_id = group.group_id
    for member in group.members.values():
        yield member_record(group_id, member)
    yield epoch_record(group_id, group.epoch, group.metadata_hash)
    for member_id in group.members:
        yield target_record(group_id, member_id, group.targets.get(member_id, {}))
    yield target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp)
    for member in group.members.values():
        yield assignment_record(group_id, member)


def apply(group: ConsumerGroup, kind: ConsumerRecordType, name: str, fields: dict[str, Any] | None) -> None:
    """Apply a record to its group; ``fields`` is None for a tombstone. The caller applies the tombstone of
    the group itself."""
    _APPLY[kind](group, name, fields)


def _apply_group(group: ConsumerGroup, _: str, fields: dict[str, Any] | None) -> None:
    if fields is not None:
        group.epoch, group.metadata_hash = fields["epoch"], fields.get("metadata_hash", 0)


def _apply_old_metadata(group: ConsumerGroup, _: str, fields: dict[str, Any] | None) -> None:
    group.has_old_metadata = fields is not None


def _apply_member(group: ConsumerGroup, member_id: str, fields: dict[str, Any] | None) -> None:
    if fields is None:
        group.remove(member_id)
    else:
        group.put(group.members.get(member_id, ConsumerMember(member_id)).with_metadata(fields))


def _apply_targets(group: ConsumerGroup, _: str, fields: dict[str, Any] | None) -> None:
    if fields is None:
        group.assignment_epoch, group.assignment_timestamp = -1, 0
    else:
        group.assignment_epoch = fields["assignment_epoch"]
        group.assignment_timestamp = fields.get("assignment_timestamp", 0)


def _apply_target(group: ConsumerGroup, member_id: str, fields: dict[str, Any] | None) -> None:
    if fields is None:
        group.targets.pop(member_id, None)
    else:
        group.targets[member_id] = {
            each["topic_id"]: tuple(sorted(each["partitions"])) for each in fields["topic_partitions"]
        }


def _apply_assignment(group: ConsumerGroup, member_id: str, fields: dict[str, Any] | None) -> None:
    if fields is not None:
        group.put(group.members.get(member_id, ConsumerMember(member_id)).with_assignment(fields))
    elif member_id in group.members:
        none = {"assigned_partitions": (), "partitions_pending_revocation": ()}
        left = {"member_epoch": LEAVING_EPOCH, "previous_member_epoch": LEAVING_EPOCH, "state": 0, **none}
        group.put(group.members[member_id].with_assignment(left))


def _apply_regex(group: ConsumerGroup, regex: str, fields: dict[str, Any] | None) -> None:
    if fields is None:
        group.regexes.pop(regex, None)
    else:
        topics = tuple(sorted(fields["topics"]))
        group.regexes[regex] = ResolvedRegex(topics, fields["version"], fields["timestamp"])


_APPLY = {
    Type.GROUP: _apply_group,
    Type.PARTITION_METADATA: _apply_old_metadata,
    Type.MEMBER: _apply_member,
    Type.TARGET_ASSIGNMENT: _apply_targets,
    Type.TARGET_ASSIGNMENT_MEMBER: _apply_target,
    Type.CURRENT_ASSIGNMENT: _apply_assignment,
    Type.REGULAR_EXPRESSION: _apply_regex,
}
