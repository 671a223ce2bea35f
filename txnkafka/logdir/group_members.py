"""Finds the members of groups and their assigned partitions, from the records of a ``__consumer_offsets``
partition that are not offsets.

A classic group is one record with all its members. In a group of the consumer protocol (KIP-848), a member
has one record, and another one with its partitions, named by topic ids.
Source: GroupMetadataManager.replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.coordinator import KEPT_RECORD
from txnkafka.model import TopicPartition
from txnkafka.wire.records import decode_group_log
from txnkafka.wire.records.group_log import GROUP_KEY_TYPE, ConsumerRecordType

if TYPE_CHECKING:
    from txnkafka.coordinator import LogEvent

_TYPES: Final = (GROUP_KEY_TYPE, ConsumerRecordType.MEMBER, ConsumerRecordType.CURRENT_ASSIGNMENT)


class GroupMember(NamedTuple):
    """A member of a group, with Kafka's names; ``host`` is the address it connected from."""

    consumer_id: str
    host: str
    client_id: str


class GroupMembers:
    """The last records about members, by key."""

    def __init__(self) -> None:
        self._records: dict[bytes, bytes] = {}

    def kept_bytes(self) -> int:
        """Bytes of the keys and values in memory, plus KEPT_RECORD per record."""
        return sum(KEPT_RECORD + len(key) + len(value) for key, value in self._records.items())

    def replay(self, event: LogEvent) -> None:
        """Apply the next event of the log; ignore records of other types."""
        if event.key is None or int.from_bytes(event.key[:2], "big") not in _TYPES:
            return
        if event.value is None:
            self._records.pop(event.key, None)
        else:
            self._records[event.key] = event.value

    def assigned(
        self, topic_names: Mapping[str, str]
    ) -> Iterator[tuple[tuple[str, TopicPartition], GroupMember]]:
        """Yield each group and partition with its assigned member. ``topic_names`` maps topic ids to names;
        topics without a name and undecodable records are left out."""
        members: dict[tuple[str, str], GroupMember] = {}
        assignments: list[tuple[str, str, list[dict[str, Any]]]] = []
        for key, raw in self._records.items():
            record = decode_group_log(key, raw)
            if record.key is None or record.value is None or record.error is not None:
                continue
            if record.key_version == GROUP_KEY_TYPE:
                yield from _classic(record.key["group"], record.value["members"])
                continue
            name = record.key["group_id"], record.key["member_id"]
            if record.key_version == ConsumerRecordType.MEMBER:
                members[name] = GroupMember(name[1], record.value["client_host"], record.value["client_id"])
            else:
                assignments.append((*name, record.value["assigned_partitions"]))
        for group, member_id, topics in assignments:
            member = members.get((group, member_id))
            for topic in topics if member is not None else ():
                for partition in topic["partitions"] if topic["topic_id"] in topic_names else ():
                    assert member is not None
                    yield (group, TopicPartition(topic_names[topic["topic_id"]], partition)), member


def _classic(
    group: str, members: list[dict[str, Any]]
) -> Iterator[tuple[tuple[str, TopicPartition], GroupMember]]:
    for each in members:
        member = GroupMember(each["member_id"], each["client_host"], each["client_id"])
        assignment = each["assignment"]
        for topic in assignment["assigned_partitions"] if isinstance(assignment, dict) else ():
            for partition in topic["partitions"]:
                yield (group, TopicPartition(topic["topic"], partition)), member
