"""The records of halves, checks and parked copies: their bytes, and refused bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.values import INTEGERS, TEXT
from txnkafka.wire.records.check_records import (
    AskRecord,
    ParkedRecord,
    ask_record_of,
    decode_ask_log,
    decode_parked_log,
    parked_key,
    parked_record_of,
)
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
    half_key,
    half_record_of,
)
from txnkafka.wire.schema import SchemaError

INT16, INT32, INT64 = (st.integers(*INTEGERS[name]) for name in ("int16", "int32", "int64"))
BATCHES = st.lists(st.builds(HalfBatch, TEXT, INT32, st.binary(max_size=20)), max_size=3).map(tuple)
OUTCOMES, AUTHORS = st.sampled_from(Outcome), st.sampled_from(DecidedBy)
PLACED = st.lists(st.tuples(TEXT, INT32), max_size=3).map(tuple)
REMARK = st.none() | TEXT
HALF_RECORDS = st.one_of(
    st.builds(HalfRecord, TEXT, INT64, TEXT, INT64, BATCHES, INT32, INT16),
    st.builds(DecideRecord, TEXT, INT64, TEXT, OUTCOMES, AUTHORS, INT64, INT16, REMARK),
    st.builds(AskedRecord, TEXT, INT16, INT64, TEXT),
    st.builds(EndRecord, TEXT, TEXT, OUTCOMES, AUTHORS, INT64, INT16, PLACED, REMARK),
    st.builds(HalfTombstone, st.sampled_from([HalfRecordType.HALF, HalfRecordType.DECIDE]), TEXT, INT64),
    st.builds(HalfTombstone, st.sampled_from([HalfRecordType.ASKED, HalfRecordType.END]), TEXT, st.just(0)),
)


@given(HALF_RECORDS)
def test_a_record_of_halves_is_decoded_as_it_was_encoded(record: Any) -> None:
    assert half_record_of(decode_half_log(*record.encode())) == record


@given(st.builds(AskRecord, TEXT, TEXT, INT16, INT64, INT32, INT64, INT64, BATCHES))
def test_a_check_is_decoded_as_it_was_encoded(record: AskRecord) -> None:
    assert ask_record_of(decode_ask_log(*record.encode())) == record


@given(st.builds(ParkedRecord, TEXT, TEXT, INT64, INT32, INT16, INT16, INT64, TEXT, BATCHES))
def test_a_parked_copy_is_decoded_as_it_was_encoded(record: ParkedRecord) -> None:
    assert parked_record_of(decode_parked_log(*record.encode())) == record


def test_the_bytes_of_a_half_and_of_its_decision() -> None:
    """They are pinned: other versions read them."""
    half = HalfRecord("id", 7, "g", 1_000, (HalfBatch("t", 3, b"RR"),), 6_000, 15)
    assert half.encode() == (
        bytes.fromhex("0000 0002 6964 0000000000000007"),
        bytes.fromhex("0000 0267 00000000000003e8 00001770 000f 02 0274 00000003 03 5252 00 00"),
    )
    decision = DecideRecord("id", 8, "g", Outcome.ROLLBACK, DecidedBy.CHECK, 2_000, 4)
    assert decision.encode() == (
        bytes.fromhex("0001 0002 6964 0000000000000008"),
        bytes.fromhex("0000 0267 02 01 0004 00000000000007d0 00 00"),
    )
    assert list(map(int, Outcome)) == [1, 2, 3, 4]
    assert half_key(HalfRecordType.END, "id") == bytes.fromhex("0003 0002 6964")
    assert parked_key("id") == bytes.fromhex("0000 0002 6964")


@pytest.mark.parametrize(("name", "position"), [("outcome", 4), ("by", 5)])
def test_numbers_without_a_meaning_are_refused(name: str, position: int) -> None:
    key, value = DecideRecord("id", 8, "g", Outcome.COMMIT, DecidedBy.ADMIN, 1).encode()
    wrong = bytearray(value)
    wrong[position] = 99
    record = decode_half_log(key, bytes(wrong))
    assert (record.error, half_record_of(record)) == (f"value: {name} 99 is not known", None)


def test_bytes_that_do_not_follow_the_tables_are_refused_with_a_reason() -> None:
    key, value = AskedRecord("id", 1, 2, "me").encode()
    for row in [(None, value), (b"\0\x07", value), (key[:-1], value), (key, value[:-1]), (key, value + b"x")]:
        record = decode_half_log(*row)
        assert record.error
        assert half_record_of(record) is None
    assert ask_record_of(decode_ask_log(key, value)) is None
    assert parked_record_of(decode_parked_log(parked_key("id"), None)) is None


def test_an_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(SchemaError, match="transaction_id"):
        HalfTombstone(HalfRecordType.END, "x" * 40_000).encode()
