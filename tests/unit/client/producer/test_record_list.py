"""The records of an open batch: exact sizes, limits, and refused records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka._core.record_list import RecordList, record_size
from txnkafka.record.builder import build_batch

CONTENT = st.none() | st.binary(max_size=200)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=10), CONTENT), max_size=3)
RECORDS = st.lists(st.tuples(CONTENT, CONTENT, st.integers(0, 2**62), HEADERS), min_size=1, max_size=200)


@given(RECORDS)
def test_the_size_is_that_of_the_encoded_batch(records: list[Any]) -> None:
    found = RecordList(None, 1 << 40)
    for number, (key, value, timestamp, headers) in enumerate(records):
        future = found.add(key, value, timestamp, headers)
        assert future is not None
        assert (future.index, future.timestamp) == (number, timestamp)
    given: Any = found.records
    assert (
        found.size
        == len(build_batch(given))
        == len(build_batch([(*row[:3], row[3] or ()) for row in records]))
    )
    assert len(found) == len(records)
    key, value, _, headers = records[0]
    first: Any = found.records[:1]
    assert len(build_batch(first)) <= record_size(key, value, headers)


@given(RECORDS, st.integers(62, 2000))
def test_a_batch_takes_records_up_to_its_limit(records: list[Any], limit: int) -> None:
    found = RecordList(None, limit)
    for key, value, timestamp, headers in records:
        size = found.size
        if found.add(key, value, timestamp, headers) is None:
            assert found.size == size
            everything = RecordList(None, 1 << 40)
            for row in found.records:
                everything.add(*row)
            everything.add(key, value, timestamp, headers)
            assert everything.size > limit
            return
        assert found.size <= limit or len(found) == 1


def test_a_closed_list_takes_no_record() -> None:
    found = RecordList(None, 1000)
    found.is_open = False
    assert found.add(None, b"a", 1) is None


def test_bytes_that_the_caller_may_change_are_copied() -> None:
    found, value = RecordList(None, 1000), bytearray(b"one")
    found.add(memoryview(b"key"), value, 1)
    value[:] = b"two"
    assert found.records == [(b"key", b"one", 1)]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (("key", b"", 1), "the key must be bytes or None, not str: encode it, or give key_serializer"),
        ((b"", "value", 1), "the value must be bytes or None, not str: encode it, or give value_serializer"),
        ((b"", 5, 1), "the value must be bytes or None, not int"),
        ((None, b"", 1, ["ab"]), "headers are pairs of a name and bytes or None, not 'ab'"),
        ((None, b"", 1, [(b"a", b"b")]), "the name of a header must be a str"),
        ((None, b"", 1, [("a", 5)]), "the value of a header must be bytes or None, not int"),
        ((None, b"", "now"), "int"),
    ],
)
def test_wrong_records_are_refused_when_they_are_sent(record: tuple[Any, ...], message: str) -> None:
    found = RecordList(None, 1000)
    with pytest.raises(TypeError, match=message):
        found.add(*record)
    assert len(found) == 0


def test_a_negative_timestamp_is_refused() -> None:
    with pytest.raises(ValueError, match="milliseconds since 1970, not -1"):
        RecordList(None, 1000).add(None, b"", -1)
