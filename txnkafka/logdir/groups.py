"""Loads the offsets that groups committed, and their members, from the ``__consumer_offsets`` partitions of a
directory.

``coordinator.Offsets`` decides which offsets are committed and which are pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.coordinator import Offsets
from txnkafka.logdir.group_members import GroupMember, GroupMembers
from txnkafka.logdir.replay import damaged, replay
from txnkafka.model import TopicPartition
from txnkafka.wire.records import GroupOffset, decode_group_log

if TYPE_CHECKING:
    from txnkafka.coordinator import CommittedOffset
    from txnkafka.logdir.finding import Finding
    from txnkafka.logdir.log_view import LogView


class PendingOffset(NamedTuple):
    """An offset committed in an open transaction: the producer, the record's offset, the value to commit."""

    producer_id: int
    record_offset: int
    committed: GroupOffset


class GroupsView(NamedTuple):
    """Committed and pending offsets in this directory's partitions with the numbers ``partitions``, and the
    member assigned to each topic partition."""

    committed: dict[tuple[str, TopicPartition], GroupOffset]
    pending: dict[tuple[str, TopicPartition], list[PendingOffset]]
    partitions: tuple[int, ...]
    findings: tuple[Finding, ...]
    members: dict[tuple[str, TopicPartition], GroupMember]


def replay_offsets_log(views: Iterable[LogView], topic_names: Mapping[str, str] | None = None) -> GroupsView:
    """Load the partitions of ``__consumer_offsets``; ``topic_names`` maps topic ids to names."""
    result = GroupsView({}, {}, (), (), {})
    partitions: list[int] = []
    findings: list[Finding] = []
    for view in views:
        partitions.append(view.partition)
        offsets, members = Offsets(), GroupMembers()
        for event in replay(view, findings, partial(_kept_bytes, offsets, members)):
            offsets.replay(event)
            members.replay(event)
        result.members.update(members.assigned(topic_names or {}))
        for name, _, value in _decoded(view, offsets.committed.values(), findings):
            result.committed[name] = value
        for producer_id, pending in offsets.pending.items():
            for name, record_offset, value in _decoded(view, pending.values(), findings):
                found = result.pending.setdefault(name, [])
                found.append(PendingOffset(producer_id, record_offset, value))
    return result._replace(partitions=tuple(sorted(partitions)), findings=tuple(findings))


def _kept_bytes(offsets: Offsets, members: GroupMembers) -> int:
    return offsets.kept_bytes() + members.kept_bytes()


def _decoded(
    view: LogView, records: Iterable[CommittedOffset], findings: list[Finding]
) -> Iterator[tuple[tuple[str, TopicPartition], int, GroupOffset]]:
    for record_offset, key, raw in records:
        record = decode_group_log(key, raw)
        value = GroupOffset.of(record)
        if value is None:
            findings.append(damaged(view, f"the record at offset {record_offset}: {record.error}"))
            continue
        yield (value.group, TopicPartition(value.topic, value.partition)), record_offset, value
