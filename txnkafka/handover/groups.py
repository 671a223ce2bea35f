"""Reads the groups of a directory, and predicts their fate at the next owner.

Source: GroupMetadataManager.replay, OffsetMetadataManager.replay, CoordinatorRecordType.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from txnkafka.coordinator import KEPT_RECORD, Offsets
from txnkafka.coordinator.group.offsets.committed_offsets import OFFSET_COMMIT_KEYS
from txnkafka.handover.report import GroupRow, Owner, error
from txnkafka.logdir.replay import replay
from txnkafka.wire.records.group_log import ConsumerRecordType, decode_consumer_record, decode_group

if TYPE_CHECKING:
    from txnkafka.coordinator import LogEvent
    from txnkafka.logdir import Finding, PartitionView

_KINDS: Final = {
    2: "classic",
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), "consumer"),
    **dict.fromkeys(range(9, 16), "share"),
}
"""Type of a group by the version of its records' keys; above 16 it is a Kafka Streams group."""
_SERVED_HERE: Final = ("classic", "consumer", "simple")


def group_rows(views: Iterable[PartitionView], to: Owner, findings: list[Finding]) -> list[GroupRow]:
    """Return a row per group in the partitions of ``__consumer_offsets``; append damage to ``findings``."""
    rows: list[GroupRow] = []
    for view in views:
        damage: list[Finding] = []
        rows += _Groups(view, damage).rows(to)
        findings += [error(each.code, each.file, each.message, each.remedy) for each in damage]
    return sorted(rows)


class _Groups:
    """The groups of one partition."""

    def __init__(self, view: PartitionView, findings: list[Finding]) -> None:
        self._offsets = Offsets()
        self._records: dict[bytes, bytes] = {}  # the last record of each key, without offsets
        for event in replay(view, findings, self._kept_bytes):
            self._take(event)

    def _take(self, event: LogEvent) -> None:
        key = event.key
        if key is None or key[:2] in OFFSET_COMMIT_KEYS:
            self._offsets.replay(event)
        elif event.value is None:
            self._records.pop(key, None)
        else:
            self._records[key] = event.value

    def _kept_bytes(self) -> int:
        records = sum(KEPT_RECORD + len(key) + len(value) for key, value in self._records.items())
        return records + self._offsets.kept_bytes()

    def rows(self, to: Owner) -> list[GroupRow]:
        """Return a row per group, unordered."""
        kinds = {_group_of(key[2:]): _kind_of(key) for key in self._records}
        known = self._generations()
        offsets = Counter(map(_group_of, self._offsets.committed))
        pending = Counter(_group_of(name) for each in self._offsets.pending.values() for name in each)
        rows = []
        for name in {**kinds, **offsets, **pending}:
            kind, (generation, members) = kinds.get(name, "simple"), known.get(name, (-1, 0))
            fate = _fate(kind, members, pending[name], to)
            rows.append(GroupRow(name, kind, generation, members, offsets[name], pending[name], fate))
        return rows

    def _generations(self) -> dict[str, tuple[int, int]]:
        """Return (generation or epoch, number of members) of each group with known records."""
        generations: dict[str, int] = {}
        members: Counter[str] = Counter()
        for key, value in self._records.items():
            classic, consumer = decode_group(key, value), decode_consumer_record(key, value)
            if classic is not None:
                name, fields = classic
                if fields is not None:
                    generations[name], members[name] = fields["generation"], len(fields["members"])
            elif consumer is not None:
                kind, name, _, fields = consumer
                if fields is not None and kind is ConsumerRecordType.GROUP:
                    generations[name] = fields["epoch"]
                members[name] += kind is ConsumerRecordType.MEMBER
        return {name: (generations.get(name, -1), members[name]) for name in {**generations, **members}}


def _kind_of(key: bytes) -> str:
    return _KINDS.get(int.from_bytes(key[:2], "big"), "streams")


def _group_of(name: bytes) -> str:
    """Return the group of a key without its version: every key begins with the group."""
    size = int.from_bytes(name[:2], "big")
    return name[2 : 2 + size].decode("utf-8", "backslashreplace")


def _fate(kind: str, members: int, pending: int, to: Owner) -> str:
    if to is Owner.TXNKAFKA and kind not in _SERVED_HERE:
        return f"its offsets are served; groups of the {kind} protocol are not; its records are kept"
    parts = ["its offsets stay"]
    if members:
        parts.append("members that return within their session timeout continue, else the group rebalances")
    if pending:
        parts.append(f"{pending} pending offsets count when their transaction commits")
    return "; ".join(parts)
