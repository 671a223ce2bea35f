"""Columns of records, compared with the records themselves: Arrow arrays with any offset, lists, headers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.record_batch import decode_batch
from txnkafka._core.key_partition import partition_of
from txnkafka.client.producer.columns import (
    SendColumns,
    arrow_columns,
    by_partition,
    columns_to_send,
    key_partitions,
    numbers_of,
)
from txnkafka.errors import MessageTooLargeError
from txnkafka.record.builder import RecordBatchBuilder

CONTENT = st.none() | st.binary(max_size=12)
HEADERS = st.lists(st.tuples(st.text(max_size=4), CONTENT), max_size=3)
ROWS = st.lists(st.tuples(CONTENT, CONTENT, st.integers(0, 2**40), HEADERS), min_size=1, max_size=40)
TYPES = st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()])
HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def arrow(values: list[Any], kind: Any, before: int, chunks: int) -> Any:
    """Return an array that begins after other values, or several chunks."""
    whole = pa.array([None] * before + values + [None], kind)
    part = whole.slice(before, len(values))
    if chunks == 1:
        return part
    middle = len(values) // 2
    return pa.chunked_array([part.slice(0, middle), part.slice(middle)])


def headers_of(rows: list[Any], before: int, chunks: int) -> Any:
    given = [[{"key": name, "value": value} for name, value in row[3]] for row in rows]
    whole = pa.array([[{"key": "other", "value": None}]] * before + given, HEADER_TYPE)
    part = whole.slice(before)
    return part if chunks == 1 else pa.chunked_array([part.slice(0, 1), part.slice(1)])


def decoded(columns: SendColumns, start: int, stop: int, limit: int) -> list[Any]:
    found, source = [], columns.input()
    for piece in columns.cut(source, start, stop, limit):
        batch = bytes(piece.encode(RecordBatchBuilder()))
        assert len(batch) <= piece.size <= limit
        found += [(each.key, each.value, each.timestamp, each.headers) for each in decode_batch(batch)]
    return found


@given(ROWS, TYPES, st.integers(0, 20), st.sampled_from([1, 2]), st.integers(300, 2000))
def test_arrow_columns_have_their_records(
    rows: list[Any], kind: Any, before: int, chunks: int, limit: int
) -> None:
    columns = columns_to_send(
        arrow([row[0] for row in rows], kind, before, chunks),
        arrow([row[1] for row in rows], kind, before, chunks),
        pa.array([row[2] for row in rows], pa.timestamp("ms", tz="UTC")),
        headers_of(rows, before, chunks),
        7,
    )
    assert decoded(columns, 0, len(rows), limit) == rows


@given(ROWS, st.integers(1, 4))
def test_sorted_columns_have_the_records_of_each_partition(rows: list[Any], count: int) -> None:
    columns = columns_to_send(
        [row[0] for row in rows], arrow([row[1] for row in rows], pa.binary(), 3, 1),
        [row[2] for row in rows], headers_of(rows, 2, 1), 7,
    )  # fmt: skip
    wanted = [0 if row[0] is None else partition_of(row[0], count) for row in rows]
    numbers = key_partitions(columns, count, 0)
    assert list(numbers) == wanted
    columns, parts = by_partition(columns, numbers, count)
    found = {number: decoded(columns, start, stop, 10_000) for number, start, stop in parts}
    assert found == {
        number: [row for row, to in zip(rows, wanted, strict=True) if to == number] for number in set(wanted)
    }


def test_columns_that_are_missing_are_null() -> None:
    columns = columns_to_send(None, [b"a", b"b"], None, None, 7)
    assert decoded(columns, 0, 2, 1000) == [(None, b"a", 7, []), (None, b"b", 7, [])]
    assert decoded(columns_to_send([b"k"], None, None, None, 7), 0, 1, 1000) == [(b"k", None, 7, [])]
    assert decoded(columns_to_send(pa.nulls(1), None, [5], None, 7), 0, 1, 1000) == [(None, None, 5, [])]
    assert columns_to_send(None, None, [1, 2, 3], None, 7).count == 3
    assert list(columns_to_send(pa.array([], pa.binary()), None, None, None, 7).timestamps) == []


@pytest.mark.parametrize(
    "timestamps",
    [
        [1000, 2000],
        np.array([1000, 2000]),
        np.array([1000, 2000], "datetime64[ms]"),
        pa.array([1000, 2000]),
        pa.array([datetime.fromtimestamp(1, UTC), datetime.fromtimestamp(2, UTC)]),
    ],
)
def test_times_of_all_kinds_are_milliseconds(timestamps: Any) -> None:
    assert list(columns_to_send(None, [b"a", b"b"], timestamps, None, 7).timestamps) == [1000, 2000]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((None, None, None, None), TypeError, "needs keys, values or timestamps"),
        (([b"a"], [b"a", b"b"], None, None), ValueError, "different lengths: 1 keys, 2 values"),
        ((None, [b"a", "b"], None, None), TypeError, r"values\[1\] must be bytes or None, not str"),
        ((None, b"ab", None, None), TypeError, "values must be a pyarrow array, or a list"),
        ((None, pa.array([1, 2]), None, None), TypeError, "values must be bytes or text, not int64"),
        ((None, [b"a"], pa.array([None], pa.int64()), None), ValueError, "timestamps must not have nulls"),
        ((None, [b"a"], pa.array(["x"]), None), TypeError, "timestamps must be numbers"),
    ],
)
def test_wrong_columns_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        columns_to_send(*arguments, 7)


def test_a_record_larger_than_a_batch_is_refused_before_anything_is_sent() -> None:
    columns = columns_to_send(None, [b"a", b"x" * 500], None, None, 7)
    with pytest.raises(
        MessageTooLargeError, match="record 1 may have 597 bytes with its batch; 400 are allowed"
    ):
        list(columns.cut(columns.input(), 0, 2, 400))


def test_the_columns_of_an_arrow_batch_are_known_by_name() -> None:
    table = pa.table({"value": [b"a"], "key": [b"k"], "partition": [1], "offset": [5], "topic": ["t"]})
    assert set(arrow_columns(table, None)) == {"values", "keys", "partitions"}
    assert set(arrow_columns(table, 2)) == {"values", "keys"}
    with pytest.raises(ValueError, match="no record has a column price"):
        arrow_columns(pa.table({"value": [b"a"], "price": [1]}), None)
    with pytest.raises(TypeError, match="takes a pyarrow RecordBatch or Table, not dict"):
        arrow_columns({"value": [b"a"]}, None)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="partitions has a number out of range"):
        numbers_of([1 << 40], "partitions", "i")
