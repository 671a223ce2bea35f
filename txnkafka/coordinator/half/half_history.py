"""``HalfHistory``: the halves of one partition of ``__txn_half`` as rows, for people and tables.

``HalfImage`` alone decides the states. This only adds the facts of the records that the image has no use for.
END remains for a day, but compaction may remove the other records of a half after it, and their facts with
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.scan import scan
from txnkafka.coordinator.half.half_image import HalfImage, HalfState
from txnkafka.wire.records.half_records import (
    DecideRecord,
    EndRecord,
    HalfRecord,
    decode_half_log,
    half_record_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.coordinator.half.half_image import Half
    from txnkafka.wire.records.half_records import DecidedBy, HalfLogRecord, Outcome


class HalfTarget(NamedTuple):
    """A partition with the number of records that the half has for it, None if this is unknown."""

    topic: str
    partition: int
    records: int | None


class HalfEntry(NamedTuple):
    """A half at the end of the log. Times in milliseconds since 1970; None for unknown values. Its HALF
    record is at ``offset``; ``asks`` are the checks that listeners got."""

    transaction_id: str
    producer_group: str
    state: HalfState
    outcome: Outcome | None
    by: DecidedBy | None
    reason: str | None
    asks: int
    born_ms: int | None
    last_asked_ms: int | None
    decided_ms: int | None
    ended_ms: int | None
    targets: tuple[HalfTarget, ...]
    offset: int | None


@dataclass(slots=True)
class _Facts:
    born_ms: int | None = None
    decided_ms: int | None = None
    targets: tuple[HalfTarget, ...] = ()
    end: EndRecord | None = None


class HalfHistory:
    """Takes the committed records of a partition, in the order of the log."""

    def __init__(self) -> None:
        self._image = HalfImage(payload_budget=0)
        self._facts: dict[str, _Facts] = {}

    def replay(self, offset: int, key: bytes | None, value: bytes | None) -> str | None:
        """Apply the next record. Return the reason if it could not be decoded, and was left out."""
        changed = self._image.replay(offset, key, value)
        decoded = decode_half_log(key, value)
        record = half_record_of(decoded)
        if record is None:
            return decoded.error or "a record of an unknown type"
        self._note(record, changed)
        return None

    def __iter__(self) -> Iterator[HalfEntry]:
        """Iterate over the halves that are not done, in the order of their first records, then over those
        that are done, the oldest first."""
        for half in self._image:
            yield _pending(half, self._facts[half.transaction_id])
        for transaction_id in self._image.ended:
            facts = self._facts[transaction_id]
            assert facts.end is not None
            yield _done(facts.end, facts)

    def _note(self, record: HalfLogRecord, changed: Half | None) -> None:
        facts = self._facts.setdefault(record.transaction_id, _Facts())
        if isinstance(record, EndRecord):
            facts.end = record
        elif changed is None:
            pass
        elif isinstance(record, HalfRecord):
            targets = tuple(HalfTarget(*each[:2], _records(each.records)) for each in record.batches)
            self._facts[record.transaction_id] = _Facts(record.born_ms, targets=targets)
        elif isinstance(record, DecideRecord) and changed.state is HalfState.DECIDED:
            facts.decided_ms = record.at_ms
        if self._image.state_of(record.transaction_id) is None:
            del self._facts[record.transaction_id]


def _records(batch: bytes) -> int | None:
    """Return the number of records by the headers of a batch; None for bytes that are not one whole batch."""
    index = scan(batch)
    return index.record_count[0] if len(index) == 1 and index.end_position == len(batch) else None


def _pending(half: Half, facts: _Facts) -> HalfEntry:
    is_parked = half.state is HalfState.PARKED
    return HalfEntry(
        half.transaction_id, half.producer_group, half.state, half.outcome, half.by, half.remark, half.asks,
        born_ms=facts.born_ms,
        last_asked_ms=None if half.last_ms < 0 or is_parked else half.last_ms,
        decided_ms=facts.decided_ms,
        ended_ms=facts.end.at_ms if is_parked and facts.end is not None else None,
        targets=facts.targets,
        offset=None if half.offset < 0 else half.offset,
    )  # fmt: skip


def _done(end: EndRecord, facts: _Facts) -> HalfEntry:
    placed = tuple(HalfTarget(topic, partition, None) for topic, partition in end.placed)
    return HalfEntry(
        end.transaction_id, end.producer_group, HalfState.DONE, end.outcome, end.by, end.remark, end.asks,
        born_ms=facts.born_ms, last_asked_ms=None, decided_ms=facts.decided_ms, ended_ms=end.at_ms,
        targets=facts.targets or placed, offset=None,
    )  # fmt: skip
