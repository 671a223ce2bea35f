"""A model of ``__txn_half``: the state of a half by its definition, from all its records, and compaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from txnkafka.wire.records.half_records import (
    AskedRecord,
    DecideRecord,
    EndRecord,
    HalfLogRecord,
    HalfRecord,
    HalfRecordType,
    HalfTombstone,
    Outcome,
)

Log = list[tuple[int, HalfLogRecord]]
"""Committed records with their offsets."""


class Standing(NamedTuple):
    """The state of one half. ``nonce`` identifies its HALF record, ``decision`` the DECIDE record that
    counts, ``resume`` the record that resumes a parked half."""

    state: str
    group: str = ""
    nonce: int = 0
    asks: int = 0
    outcome: Outcome | None = None
    decision: int = 0
    resume: int | None = None


def standing(log: Iterable[tuple[int, HalfLogRecord]], transaction_id: str) -> Standing | None:
    """Return the state of a half, None for an unknown one."""
    mine = [record for _, record in log if record.transaction_id == transaction_id]
    ends = [place for place, record in enumerate(mine) if _is_end(record)]
    last = mine[ends[-1]] if ends else None
    after = mine[ends[-1] + 1 :] if ends else mine
    if isinstance(last, EndRecord):
        if last.outcome is not Outcome.PARK:
            return Standing("done", outcome=last.outcome)
        resumes = [
            each.nonce for each in _decisions(after, last.producer_group) if each.outcome is Outcome.RESUME
        ]
        return Standing(
            "parked", last.producer_group, asks=last.asks, outcome=last.outcome,
            resume=resumes[0] if resumes else None,
        )  # fmt: skip
    halves = [place for place, record in enumerate(after) if isinstance(record, HalfRecord)]
    if not halves:
        return None
    half, later = after[halves[0]], after[halves[0] + 1 :]
    assert isinstance(half, HalfRecord)
    decisions = [
        each for each in _decisions(later, half.producer_group) if each.outcome is not Outcome.RESUME
    ]
    asks = [0, *(_asks(record) for record in later if _asks(record) >= 0)][-1]
    if not decisions:
        return Standing("prepared", half.producer_group, half.nonce, asks)
    first = decisions[0]
    return Standing("decided", half.producer_group, half.nonce, asks, first.outcome, first.nonce)


def compacted(log: Sequence[tuple[int, HalfLogRecord]], stop: int, *, drops_tombstones: bool) -> Log:
    """Return a log whose first ``stop`` records were compacted: the last record of each key stays.
    ``drops_tombstones``: their retention is over."""
    keys = [record.encode()[0] for _, record in log]
    last = {key: place for place, key in enumerate(keys[:stop])}
    kept = []
    for place, row in enumerate(log):
        is_tombstone = isinstance(row[1], HalfTombstone)
        if place >= stop or (last[keys[place]] == place and not (is_tombstone and drops_tombstones)):
            kept.append(row)
    return kept


def _is_end(record: HalfLogRecord) -> bool:
    is_tombstone = isinstance(record, HalfTombstone) and record.type is HalfRecordType.END
    return is_tombstone or isinstance(record, EndRecord)


def _decisions(records: Iterable[HalfLogRecord], group: str) -> list[DecideRecord]:
    return [each for each in records if isinstance(each, DecideRecord) and each.producer_group == group]


def _asks(record: HalfLogRecord) -> int:
    """Return the number of checks that a record sets, -1 for other records."""
    if isinstance(record, AskedRecord):
        return record.asks
    is_tombstone = isinstance(record, HalfTombstone) and record.type is HalfRecordType.ASKED
    return 0 if is_tombstone else -1
