"""``GroupPartition``: the groups of one partition of ``__consumer_offsets``, from its log.

A group is of the classic or of the consumer protocol; the newest record of either kind decides.

Source: GroupCoordinatorShard.replay, GroupMetadataManager.replay.
"""

from __future__ import annotations

from typing import Any, Final

from txnkafka.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from txnkafka.coordinator.group.consumer import consumer_records
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.group_requests import Protocol
from txnkafka.coordinator.group.offsets.group_offsets import GroupOffsets
from txnkafka.coordinator.log_event import LogEvent
from txnkafka.model import NO_TIMESTAMP
from txnkafka.wire.records.group_log import (
    ConsumerRecordType,
    decode_consumer_record,
    decode_group,
    encode_group_key,
)

GROUP_KEY: Final = b"\0\2"
CONSUMER_KEYS: Final = frozenset(kind.to_bytes(2, "big") for kind in ConsumerRecordType)
AnyGroup = ClassicGroup | ConsumerGroup


class GroupPartition:
    """One partition: ``groups`` by id. A simple group has offsets, but no record of its own. ``converted``
    has the classic groups whose newest record is the conversion from a consumer group."""

    def __init__(self) -> None:
        self.groups: dict[str, AnyGroup] = {}
        self.converted: set[str] = set()
        self.offsets = GroupOffsets()
        self._removed: str | None = None  # the consumer group that the previous record removed

    def replay(self, event: LogEvent) -> None:
        """Apply the next record or end marker of the log."""
        removed, self._removed = self._removed, None
        if event.key is not None and event.key[:2] in CONSUMER_KEYS:
            self._replay_consumer(event.key, event.value)
        elif event.key is not None and event.key[:2] == GROUP_KEY:
            decoded = decode_group(event.key, event.value)
            if decoded is not None:
                group_id, fields = decoded
                self.groups.pop(group_id, None)
                self.converted.discard(group_id)
                if fields is not None:
                    self.groups[group_id] = group_of(group_id, fields)
                    if group_id == removed and fields["members"]:
                        self.converted.add(group_id)
        else:
            self.offsets.replay(event)

    def _replay_consumer(self, key: bytes, value: bytes | None) -> None:
        decoded = decode_consumer_record(key, value)
        if decoded is None:
            return
        kind, group_id, name, fields = decoded
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if fields is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
        consumer_records.apply(group, kind, name, fields)
        if fields is None and kind is ConsumerRecordType.GROUP:
            del self.groups[group_id]
            self._removed = group_id

    def add_simple_groups(self, now_ms: int) -> None:
        """Add the groups that only have offsets, after the last record was replayed."""
        for group_id in self.offsets.groups:
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup(group_id, now_ms)


def group_of(group_id: str, fields: dict[str, Any]) -> ClassicGroup:
    """Return the group of a record: stable with members, else empty."""
    group = ClassicGroup(group_id, fields.get("current_state_timestamp", NO_TIMESTAMP))
    group.generation = fields["generation"]
    group.protocol_type = fields["protocol_type"] or None
    group.protocol, group.leader = fields["protocol"], fields["leader"]
    for found in fields["members"]:
        session_ms = found["session_timeout"]
        rebalance_ms = found.get("rebalance_timeout", -1)
        member = Member(
            found["member_id"], found.get("group_instance_id"), found["client_id"], found["client_host"],
            session_ms if rebalance_ms < 0 else rebalance_ms, session_ms,
            (Protocol(group.protocol or "", found["subscription"]),), found["assignment"], is_new=False,
        )  # fmt: skip
        group.put(member)
    if group.members:
        group.state = GroupState.STABLE
    return group


def group_tombstones(group: AnyGroup) -> list[tuple[bytes, None]]:
    """Return the tombstones of a group's records, without its offsets."""
    if isinstance(group, ConsumerGroup):
        return [(key, None) for key, _ in consumer_records.group_tombstones(group, group.members)]
    return [(encode_group_key(group.group_id), None)]


def record_of(group: ClassicGroup) -> dict[str, Any]:
    """Return the fields of a group's record (``newGroupMetadataRecord``)."""
    return {
        "protocol_type": group.protocol_type or "",
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "current_state_timestamp": group.state_timestamp,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "rebalance_timeout": member.rebalance_timeout_ms,
                "session_timeout": member.session_timeout_ms,
                "subscription": member.metadata(group.protocol),
                "assignment": member.assignment,
            }
            for member in group.members.values()
        ],
    }
