"""The content of settlements: real records, END, tombstones and parked copies."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.half.half_world import GROUP, decide_record, folded, half_record
from txnkafka.coordinator.half.half_image import Half, HalfState
from txnkafka.coordinator.half.settlement import MOST_BYTES, MOST_HALVES, Settlement, chosen
from txnkafka.wire.records.check_records import ParkedRecord, decode_parked_log, parked_key, parked_record_of
from txnkafka.wire.records.half_records import (
    AskedRecord,
    DecidedBy,
    EndRecord,
    HalfBatch,
    HalfLogRecord,
    HalfRecord,
    HalfRecordType,
    HalfTombstone,
    Outcome,
    decode_half_log,
    half_record_of,
)

COMMIT, ROLLBACK, PARK, RESUME = Outcome


def _decided(outcome: Outcome, *, asks: int = 0) -> Half:
    asked = [(1, AskedRecord("a", asks, 1_500, "me"))] if asks else []
    image = folded(
        [(0, half_record("a", 5)), *asked, (2, decide_record("a", outcome, 6, by=DecidedBy.CHECK))]
    )
    (half,) = image.decided.values()
    return half


def _rows(content: Settlement) -> list[HalfLogRecord | None]:
    return [half_record_of(decode_half_log(key, value)) for key, value in content.half_rows]


def test_a_commit_has_the_payload_then_end_then_tombstones() -> None:
    half, content = _decided(COMMIT, asks=2), Settlement()
    batches = half_record("a", 5).batches
    content.end(half, batches, 3_000)
    assert content.batches == list(batches)
    assert _rows(content) == [
        EndRecord("a", GROUP, COMMIT, DecidedBy.CHECK, 3_000, 2, (("t", 0),)),
        HalfTombstone(HalfRecordType.HALF, "a", 5),
        HalfTombstone(HalfRecordType.DECIDE, "a", 6),
        HalfTombstone(HalfRecordType.ASKED, "a"),
    ]
    assert (content.parked_rows, content.halves) == ([], [half])


def test_a_rollback_has_no_real_record() -> None:
    content = Settlement()
    content.end(_decided(ROLLBACK), half_record("a", 5).batches, 3_000)
    assert (content.batches, content.parked_rows) == ([], [])
    assert _rows(content)[0] == EndRecord("a", GROUP, ROLLBACK, DecidedBy.CHECK, 3_000)


def test_a_parked_half_has_a_copy_instead_of_real_records() -> None:
    content = Settlement()
    content.end(_decided(PARK, asks=15), half_record("a", 5).batches, 3_000)
    assert content.batches == []
    ((key, value),) = content.parked_rows
    assert parked_record_of(decode_parked_log(key, value)) == ParkedRecord(
        "a", GROUP, 1_000, -1, -1, 15, 3_000, "parked by an administrator", half_record("a", 5).batches
    )


def test_a_commit_that_a_topic_refuses_is_parked_with_the_reason() -> None:
    content = Settlement()
    content.end(_decided(COMMIT), half_record("a", 5).batches, 3_000, reason="t: it does not exist")
    assert content.batches == []
    end = _rows(content)[0]
    assert isinstance(end, EndRecord)
    assert (end.outcome, end.by, end.remark) == (PARK, DecidedBy.POLICY, "t: it does not exist")
    assert b"it does not exist" in (content.parked_rows[0][1] or b"")


def test_a_resumed_half_is_prepared_anew_from_its_copy() -> None:
    image = folded(
        [
            (0, EndRecord("a", GROUP, PARK, DecidedBy.POLICY, 2_000, 15)),
            (1, decide_record("a", RESUME, 7, by=DecidedBy.ADMIN)),
        ]
    )
    (half,) = image.resuming.values()
    copy = ParkedRecord("a", GROUP, 1_000, 9_000, 3, 15, 2_000, "", half_record("a", 5).batches)
    content = Settlement()
    content.resume(half, copy, 8, 4_000)
    assert _rows(content) == [
        HalfTombstone(HalfRecordType.END, "a"),
        HalfRecord("a", 8, GROUP, 4_000, copy.batches, 9_000, 3),
        HalfTombstone(HalfRecordType.DECIDE, "a", 7),
    ]
    assert content.parked_rows == [(parked_key("a"), None)]


def test_a_half_without_a_decision_is_refused() -> None:
    half = Half("a", GROUP, HalfState.PREPARED)
    with pytest.raises(ValueError, match="half a is not decided"):
        Settlement().end(half, (), 0)
    with pytest.raises(ValueError, match="half a is not resumed"):
        Settlement().resume(half, ParkedRecord("a", GROUP, 0, 0, 0, 0, 0, "", ()), 1, 0)


def test_one_settlement_takes_a_bounded_number_of_halves_and_bytes() -> None:
    count = MOST_HALVES + 1
    log: list[tuple[int, HalfLogRecord]] = [(n, half_record(f"id{n}")) for n in range(count)]
    log += [(count + n, decide_record(f"id{n}", COMMIT, n)) for n in reversed(range(count))]
    image = folded(log)
    first = chosen(image, {})
    assert [half.transaction_id for half in first] == [f"id{n}" for n in reversed(range(1, count))]
    rest = chosen(image, {half.transaction_id: half for half in first})
    assert [half.transaction_id for half in rest] == ["id0"]

    large = HalfBatch("t", 0, bytes(MOST_BYTES // 2 + 1))
    log = [(n, HalfRecord(f"id{n}", 0, GROUP, 0, (large,))) for n in range(2)]
    log += [(2 + n, decide_record(f"id{n}", COMMIT, n)) for n in range(2)]
    assert len(chosen(folded(log, payload_budget=0), {})) == 1


def test_an_empty_settlement_is_recognized() -> None:
    content = Settlement()
    assert content.is_empty
    content.clean([], ["a"])
    assert not content.is_empty
    assert _rows(content) == [HalfTombstone(HalfRecordType.END, "a")]
