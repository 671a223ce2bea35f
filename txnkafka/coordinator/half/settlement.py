"""``Settlement``: the content of one Kafka transaction that carries decisions out.

Real records, END and tombstones are in the same transaction, so that a half is visible exactly if its END
record says so. END comes before the tombstones of a half: after each prefix of the log the image is right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from txnkafka.coordinator.half.half_image import HalfState
from txnkafka.wire.records.check_records import ParkedRecord, parked_key
from txnkafka.wire.records.half_records import (
    DecidedBy,
    DecideRecord,
    EndRecord,
    HalfBatch,
    HalfRecord,
    HalfRecordType,
    HalfTombstone,
    Outcome,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.coordinator.half.half_image import Half, HalfImage

MOST_HALVES: Final = 500
MOST_BYTES: Final = 16 << 20
Row = tuple[bytes, bytes | None]


@dataclass(slots=True)
class Settlement:
    """``batches`` go to the real partitions, ``half_rows`` (key, value) to the partition of ``__txn_half``,
    ``parked_rows`` to the same partition of ``__txn_check_max``. ``halves`` are those that it ends or
    resumes, ``decisions`` were made by the policy."""

    batches: list[HalfBatch] = field(default_factory=list)
    half_rows: list[Row] = field(default_factory=list)
    parked_rows: list[Row] = field(default_factory=list)
    halves: list[Half] = field(default_factory=list)
    decisions: list[DecideRecord] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is to be written."""
        return not (self.batches or self.half_rows or self.parked_rows)

    def end(self, half: Half, batches: Iterable[HalfBatch], now_ms: int, reason: str | None = None) -> None:
        """Carry out the decision about a half with this payload; with a ``reason`` park it instead. Raises
        ValueError for a half without a decision."""
        if half.state is not HalfState.DECIDED or half.outcome is None or half.by is None:
            raise ValueError(f"half {half.transaction_id} is not decided")
        outcome, by, remark = half.outcome, half.by, half.remark
        if reason is not None:
            outcome, by, remark = Outcome.PARK, DecidedBy.POLICY, reason
        placed: tuple[tuple[str, int], ...] = ()
        if outcome is Outcome.COMMIT:
            content = list(batches)
            self.batches += content
            placed = tuple((each.topic, each.partition) for each in content)
        elif outcome is Outcome.PARK:
            self._park(half, batches, now_ms, remark or "parked by an administrator")
        end = EndRecord(
            half.transaction_id, half.producer_group, outcome, by, now_ms, half.asks, placed, remark
        )
        self.half_rows.append(end.encode())
        self._bury(HalfRecordType.HALF, half.transaction_id, half.nonce)
        self._bury(HalfRecordType.DECIDE, half.transaction_id, half.decision_nonce)
        if half.asks:
            self._bury(HalfRecordType.ASKED, half.transaction_id)
        self.halves.append(half)

    def resume(self, half: Half, parked: ParkedRecord, nonce: int, now_ms: int) -> None:
        """Prepare a parked half again, without checks; its age begins now. Raises ValueError for a half that
        nobody resumes."""
        if half.resume_nonce is None:
            raise ValueError(f"half {half.transaction_id} is not resumed")
        record = HalfRecord(
            half.transaction_id, nonce, parked.producer_group, now_ms, parked.batches, parked.immunity_ms,
            parked.check_max,
        )  # fmt: skip
        self._bury(HalfRecordType.END, half.transaction_id)
        self.half_rows.append(record.encode())
        self._bury(HalfRecordType.DECIDE, half.transaction_id, half.resume_nonce)
        self.parked_rows.append((parked_key(half.transaction_id), None))
        self.halves.append(half)

    def decide(self, decisions: Iterable[DecideRecord]) -> None:
        """Write decisions of the policy. The log shows later which of them are the first ones."""
        self.decisions += decisions
        self.half_rows += [each.encode() for each in self.decisions]

    def clean(self, strays: Iterable[HalfTombstone], expired: Iterable[str]) -> None:
        """Bury strays, and outcomes that need not be known any longer."""
        self.half_rows += [stray.encode() for stray in strays]
        for transaction_id in expired:
            self._bury(HalfRecordType.END, transaction_id)

    def _park(self, half: Half, batches: Iterable[HalfBatch], now_ms: int, reason: str) -> None:
        record = ParkedRecord(
            half.transaction_id, half.producer_group, half.born_ms, half.immunity_ms, half.check_max,
            half.asks, now_ms, reason, tuple(batches),
        )  # fmt: skip
        self.parked_rows.append(record.encode())

    def _bury(self, kind: HalfRecordType, transaction_id: str, nonce: int = 0) -> None:
        self.half_rows.append(HalfTombstone(kind, transaction_id, nonce).encode())


def chosen(image: HalfImage, busy: Mapping[str, Half]) -> list[Half]:
    """Return the decided halves to settle next, in the order of their decisions, without those in ``busy``,
    whose settlement is under way: as many as one transaction takes."""
    found: list[Half] = []
    size = 0
    for half in image.decided.values():
        if busy.get(half.transaction_id) is half:
            continue
        size += half.payload_bytes
        if found and (len(found) == MOST_HALVES or size > MOST_BYTES):
            break
        found.append(half)
    return found
