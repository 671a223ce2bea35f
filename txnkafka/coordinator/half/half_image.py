"""``HalfImage``: the state of one partition of ``__txn_half``, built by the replay of its log.

A half is PREPARED by its HALF record. The first DECIDE in offset order decides it, END carries the decision
out. A parked half can be resumed: its owner then replaces END by a new HALF record. All other records change
nothing, and are remembered as strays until the owner has written tombstones for them.

The log may be compacted at any time: the image is the same before and after. Therefore the state after END
comes from the END record alone, and a duplicate never replaces the record that counts.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from txnkafka.wire.records.half_records import (
    AskedRecord,
    DecidedBy,
    DecideRecord,
    EndRecord,
    HalfBatch,
    HalfRecord,
    HalfRecordType,
    HalfTombstone,
    Outcome,
    decode_half_log,
    half_record_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PAYLOAD_BUDGET: Final = 8 << 20
MOST_ENDED: Final = 100_000


class HalfState(enum.Enum):
    """The state of a half. DONE halves are only remembered, to recognize late records."""

    PREPARED = "prepared"
    DECIDED = "decided"
    DONE = "done"
    PARKED = "parked"


@dataclass(slots=True)
class Half:
    """A half that is not done. Times in milliseconds since 1970; -1 as immunity and number of checks stands
    for the resolver's settings.

    ``batches`` is None if the payload is only in the log, at ``offset``; a parked half has its payload in
    ``__txn_check_max`` (offset -1). ``asks`` were confirmed by listeners, the last one at ``last_ms``."""

    transaction_id: str
    producer_group: str
    state: HalfState
    offset: int = -1
    nonce: int = 0
    born_ms: int = -1
    immunity_ms: int = -1
    check_max: int = -1
    asks: int = 0
    last_ms: int = -1
    batches: tuple[HalfBatch, ...] | None = None
    payload_bytes: int = 0
    outcome: Outcome | None = None
    by: DecidedBy | None = None
    remark: str | None = None
    decision_nonce: int = 0
    resume_nonce: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a half that is done."""

    outcome: Outcome
    at_ms: int


class HalfImage:
    """``decided`` and ``resuming`` are the halves that wait for their owner, in the order of the decisions;
    ``strays`` the records that wait for a tombstone; ``ended`` the outcomes, the oldest first.

    The payloads of at most ``payload_budget`` bytes stay in memory."""

    def __init__(self, payload_budget: int = PAYLOAD_BUDGET) -> None:
        self.decided: dict[str, Half] = {}
        self.resuming: dict[str, Half] = {}
        self.strays: dict[HalfTombstone, None] = {}
        self.ended: dict[str, Ended] = {}
        self.unreadable = 0
        self._halves: dict[str, Half] = {}
        self._left = payload_budget

    def get(self, transaction_id: str) -> Half | None:
        """Return a half that is not done."""
        return self._halves.get(transaction_id)

    def __iter__(self) -> Iterator[Half]:
        """Iterate over the halves that are not done, in the order of their first records."""
        return iter(self._halves.values())

    def __len__(self) -> int:
        return len(self._halves)

    def state_of(self, transaction_id: str) -> HalfState | None:
        """Return the state of a half, None for an unknown id."""
        half = self._halves.get(transaction_id)
        if half is not None:
            return half.state
        return HalfState.DONE if transaction_id in self.ended else None

    def replay(self, offset: int, key: bytes | None, value: bytes | None) -> Half | None:
        """Apply the next committed record of the log; return the half whose state or number of checks has
        changed, if it is still there. A record that cannot be decoded is counted and left out."""
        record = half_record_of(decode_half_log(key, value))
        if record is None:
            self.unreadable += 1
            return None
        changed: Half | None = self._REPLAYS[type(record)](self, offset, record)
        return changed

    def _half(self, offset: int, record: HalfRecord) -> Half | None:
        transaction_id = record.transaction_id
        known = self._halves.get(transaction_id)
        if known is not None or transaction_id in self.ended:
            self._stray(HalfRecordType.HALF, transaction_id, record.nonce)
            return None
        half = Half(
            transaction_id, record.producer_group, HalfState.PREPARED, offset, record.nonce, record.born_ms,
            record.immunity_ms, record.check_max,
            payload_bytes=sum(len(each.records) for each in record.batches),
        )  # fmt: skip
        if half.payload_bytes <= self._left:
            half.batches = record.batches
            self._left -= half.payload_bytes
        self._halves[transaction_id] = half
        return half

    def _decide(self, offset: int, record: DecideRecord) -> Half | None:
        half = self._halves.get(record.transaction_id)
        is_resume = record.outcome is Outcome.RESUME
        if half is None or half.producer_group != record.producer_group:
            pass
        elif half.state is HalfState.PREPARED and not is_resume:
            half.state, half.outcome, half.by = HalfState.DECIDED, record.outcome, record.by
            half.remark, half.decision_nonce = record.remark, record.nonce
            self.decided[half.transaction_id] = half
            return half
        elif half.state is HalfState.PARKED and is_resume and half.resume_nonce is None:
            half.resume_nonce = record.nonce
            self.resuming[half.transaction_id] = half
            return half
        self._stray(HalfRecordType.DECIDE, record.transaction_id, record.nonce)
        return None

    def _asked(self, offset: int, record: AskedRecord) -> Half | None:
        half = self._halves.get(record.transaction_id)
        if half is None or half.state is HalfState.PARKED:
            self._stray(HalfRecordType.ASKED, record.transaction_id)
            return None
        half.asks, half.last_ms = record.asks, record.last_ms
        self.strays.pop(HalfTombstone(HalfRecordType.ASKED, record.transaction_id), None)
        return half

    def _end(self, offset: int, record: EndRecord) -> Half | None:
        transaction_id = record.transaction_id
        half = self._halves.get(transaction_id)
        if half is not None and half.asks and half.state is not HalfState.PARKED:
            self._stray(HalfRecordType.ASKED, transaction_id)  # in case END comes without its tombstone
        self._forget(transaction_id)
        if record.outcome is not Outcome.PARK:
            self.ended[transaction_id] = Ended(record.outcome, record.at_ms)
            return None
        parked = self._halves[transaction_id] = Half(
            transaction_id, record.producer_group, HalfState.PARKED, asks=record.asks, last_ms=record.at_ms,
            outcome=record.outcome, by=record.by, remark=record.remark,
        )  # fmt: skip
        return parked

    def _tombstone(self, offset: int, record: HalfTombstone) -> Half | None:
        self.strays.pop(record, None)
        if record.type is HalfRecordType.END:
            self._forget(record.transaction_id)
        half = self._halves.get(record.transaction_id)
        if record.type is HalfRecordType.ASKED and half is not None and half.state is not HalfState.PARKED:
            half.asks, half.last_ms = 0, -1
            return half
        return None

    def _forget(self, transaction_id: str) -> None:
        half = self._halves.pop(transaction_id, None)
        if half is not None and half.batches is not None:
            self._left += half.payload_bytes
        self.ended.pop(transaction_id, None)
        self.decided.pop(transaction_id, None)
        self.resuming.pop(transaction_id, None)

    def _stray(self, kind: HalfRecordType, transaction_id: str, nonce: int = 0) -> None:
        self.strays[HalfTombstone(kind, transaction_id, nonce)] = None

    def expired(self, before_ms: int, limit: int) -> list[str]:
        """Return ids whose outcome is older than a time, or one of too many; at most ``limit``, the oldest
        first. Their END records get tombstones."""
        too_many = len(self.ended) - MOST_ENDED
        found: list[str] = []
        for transaction_id, end in self.ended.items():
            if len(found) >= limit or (end.at_ms >= before_ms and len(found) >= too_many):
                break
            found.append(transaction_id)
        return found

    _REPLAYS: Final[dict[type, Any]] = {
        HalfRecord: _half,
        DecideRecord: _decide,
        AskedRecord: _asked,
        EndRecord: _end,
        HalfTombstone: _tombstone,
    }
