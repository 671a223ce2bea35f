"""Offsets that groups committed, from the ``__consumer_offsets`` partitions of a directory.

An offset committed in a transaction is pending until the end marker of its producer: COMMIT makes it the
committed one unless a later record committed another meanwhile, ABORT drops it. A tombstone removes the
committed and all pending offsets of its key. What is open at the end of the log stays pending.
Source: OffsetMetadataManager.replay and replayEndTransactionMarker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.logdir.replay import KEPT_RECORD, LogEvent, damaged, replay
from txnkafka.model import NO_PRODUCER_ID, TopicPartition
from txnkafka.wire.records import OffsetAndMetadata, decode_group_log

if TYPE_CHECKING:
    from txnkafka.logdir.finding import Finding
    from txnkafka.logdir.partition import PartitionView

__all__ = [
    "CONSUMER_OFFSETS_TOPIC",
    "CommittedOffset",
    "GroupsView",
    "PendingOffset",
    "replay_offsets_log",
]

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
OFFSET_COMMIT_KEYS = (b"\0\0", b"\0\1")  # two versions of one key, with the same fields


class CommittedOffset(NamedTuple):
    """A record that committed an offset, not decoded yet."""

    record_offset: int
    key: bytes
    value: bytes


class PendingOffset(NamedTuple):
    """An offset in a transaction that has not ended: the producer, the record's offset, what it will be."""

    producer_id: int
    record_offset: int
    committed: OffsetAndMetadata


class GroupsView(NamedTuple):
    """Committed and pending offsets of the partitions that are here, whose numbers are ``partitions``."""

    committed: dict[tuple[str, TopicPartition], OffsetAndMetadata]
    pending: dict[tuple[str, TopicPartition], list[PendingOffset]]
    partitions: tuple[int, ...]
    findings: tuple[Finding, ...]


class _Offsets:
    """The state of one partition; keys are raw, without their version."""

    def __init__(self) -> None:
        self.committed: dict[bytes, CommittedOffset] = {}
        self.pending: dict[int, dict[bytes, CommittedOffset]] = {}

    def kept_bytes(self) -> int:
        """Keys and values that are kept."""
        kept = (self.committed, *self.pending.values())
        return sum(KEPT_RECORD + len(each.key) + len(each.value) for held in kept for each in held.values())

    def apply(self, event: LogEvent) -> None:
        if event.committed is not None:
            self._end(event.producer_id, event.committed)
        elif event.key is not None and event.key[:2] in OFFSET_COMMIT_KEYS:
            self._commit(event, event.key)

    def _end(self, producer_id: int, committed: bool) -> None:
        for name, pending in self.pending.pop(producer_id, {}).items():
            there = self.committed.get(name)
            if committed and (there is None or pending.record_offset > there.record_offset):
                self.committed[name] = pending

    def _commit(self, event: LogEvent, key: bytes) -> None:
        name = key[2:]
        if event.value is None:
            self.committed.pop(name, None)
            for pending in self.pending.values():
                pending.pop(name, None)
            return
        target = self.committed
        if event.producer_id != NO_PRODUCER_ID:
            target = self.pending.setdefault(event.producer_id, {})
        target[name] = CommittedOffset(event.offset, key, event.value)


def replay_offsets_log(views: Iterable[PartitionView]) -> GroupsView:
    """Load the partitions of ``__consumer_offsets``."""
    result = GroupsView({}, {}, (), ())
    partitions: list[int] = []
    findings: list[Finding] = []
    for view in views:
        partitions.append(view.partition)
        offsets = _Offsets()
        for event in replay(view, findings, offsets.kept_bytes):
            offsets.apply(event)
        for name, _, value in _decoded(view, offsets.committed.values(), findings):
            result.committed[name] = value
        for producer_id, pending in offsets.pending.items():
            for name, record_offset, value in _decoded(view, pending.values(), findings):
                found = result.pending.setdefault(name, [])
                found.append(PendingOffset(producer_id, record_offset, value))
    return result._replace(partitions=tuple(sorted(partitions)), findings=tuple(findings))


def _decoded(
    view: PartitionView, records: Iterable[CommittedOffset], findings: list[Finding]
) -> Iterator[tuple[tuple[str, TopicPartition], int, OffsetAndMetadata]]:
    for record_offset, key, raw in records:
        record = decode_group_log(key, raw)
        value = OffsetAndMetadata.of(record)
        if value is None:
            findings.append(damaged(view, f"the record at offset {record_offset}: {record.error}"))
            continue
        yield (value.group, TopicPartition(value.topic, value.partition)), record_offset, value
