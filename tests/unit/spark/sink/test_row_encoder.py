"""Rows of Arrow become record batches: partitions as Java chooses them, order, sizes, and errors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka._core.key_partition import partition_of
from txnkafka.errors import MessageTooLargeError
from txnkafka.record.builder import RecordBatchBuilder
from txnkafka.spark.record_batches import RecordBatchesDecoder
from txnkafka.spark.sink.row_encoder import EncodedBatch, RowEncoder, TopicLayout, windows

NOW_MS = 1_700_000_000_000
LAYOUTS = {"out": TopicLayout(4, 1 << 20), "other": TopicLayout(2, 1 << 20)}


def encoder(topic: str | None = "out", codec: str = "none", **more: Any) -> RowEncoder:
    layouts = more.pop("layouts", LAYOUTS)
    return RowEncoder(topic, layouts, RecordBatchBuilder(codec), now_ms=NOW_MS, **more)


def decoded(batch: EncodedBatch) -> list[dict[str, Any]]:
    """Return the records of a batch."""
    found = RecordBatchesDecoder().records(memoryview(batch.content))
    return [row for column in found for row in column.to_pylist()]


def rows(count: int, **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"%d" % number for number in range(count)]), **columns})


def values(batches: list[EncodedBatch]) -> dict[tuple[str, int], list[bytes]]:
    """Return the values of each partition, in their order."""
    found: dict[tuple[str, int], list[bytes]] = {}
    for batch in batches:
        found.setdefault((batch.topic, batch.partition), []).extend(row["value"] for row in decoded(batch))
    return found


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_choose_the_partition_as_in_java(kind: pa.DataType, codec: str) -> None:
    keys = [None if number % 5 == 4 else b"key %d" % number for number in range(100)]
    texts = [key if key is None or kind == pa.binary() else key.decode() for key in keys]
    found = values(list(encoder(codec=codec, first=2).encode([rows(100, key=pa.array(texts, kind))])))
    expected: dict[tuple[str, int], list[bytes]] = {}
    for number, key in enumerate(keys):
        partition = 2 if key is None else partition_of(key, 4)
        expected.setdefault(("out", partition), []).append(b"%d" % number)
    assert found == expected


def test_a_partition_of_the_row_comes_first() -> None:
    given = rows(4, key=pa.array(["a", "a", None, None]), partition=pa.array([3, None, 1, None], pa.int32()))
    found = values(list(encoder(first=2).encode([given])))
    by_key = partition_of(b"a", 4)
    assert found[("out", 3)][0] == b"0"
    assert b"1" in found[("out", by_key)]
    assert found[("out", 1)][-1:] == [b"2"] or by_key == 1
    assert found.get(("out", 2), [])[-1:] == [b"3"]


@pytest.mark.parametrize("number", [-1, 4])
def test_a_partition_that_the_topic_does_not_have(number: int) -> None:
    given = rows(2, partition=pa.array([0, number], pa.int32()))
    with pytest.raises(ValueError, match=f"out has no partition {number}: it has 0 to 3"):
        list(encoder().encode([given]))


def test_rows_without_keys_go_to_one_partition_after_another() -> None:
    batches = list(encoder(first=3, window_bytes=1).encode([rows(2), rows(2), rows(2)]))
    assert [batch.partition for batch in batches] == [3, 0, 1]


def test_each_row_has_its_topic() -> None:
    given = rows(6, topic=pa.array(["out", "other"] * 3), partition=pa.array([1] * 6, pa.int32()))
    found = values(list(encoder(None).encode([given])))
    assert found == {("out", 1): [b"0", b"2", b"4"], ("other", 1): [b"1", b"3", b"5"]}


def test_the_option_replaces_the_column_topic() -> None:
    batches = list(encoder("other").encode([rows(2, topic=pa.array(["out", None]))]))
    assert {batch.topic for batch in batches} == {"other"}


@pytest.mark.parametrize(
    ("topic", "text"), [(None, "a row has no topic"), ("gone", "the target has no topic gone: create it")]
)
def test_topics_that_cannot_be_written(topic: str | None, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        list(encoder(None).encode([rows(1, topic=pa.array([topic], pa.string()))]))


def test_timestamps_and_headers() -> None:
    times = pa.array([datetime(2026, 1, 31, 12, 0, 0, 1999, UTC), None], pa.timestamp("us", "UTC"))
    headers = pa.array(
        [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    (batch,) = encoder().encode([rows(2, timestamp=times, headers=headers)])
    first, second = decoded(batch)
    assert first["timestamp"] == datetime(2026, 1, 31, 12, 0, 0, 1000, UTC)
    assert second["timestamp"] == datetime.fromtimestamp(NOW_MS / 1000, UTC)
    assert first["headers"] == [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert not second["headers"]


def test_null_values_are_tombstones() -> None:
    given = pa.record_batch({"key": pa.array(["a"]), "value": pa.array([None], pa.binary())})
    (batch,) = encoder().encode([given])
    assert decoded(batch)[0]["value"] is None


def test_batches_are_at_most_what_the_topic_takes() -> None:
    layouts = {"out": TopicLayout(1, 1000)}
    batches = list(encoder(layouts=layouts).encode([rows(500)]))
    assert max(len(batch.content) for batch in batches) <= 1000
    assert sum(batch.records for batch in batches) == 500
    assert values(batches) == {("out", 0): [b"%d" % number for number in range(500)]}


def test_a_record_that_the_topic_does_not_take() -> None:
    given = pa.record_batch({"value": pa.array([b"", b"x" * 2000])})
    with pytest.raises(MessageTooLargeError, match=r"^out-0: record 1 .* max\.message\.bytes of the topic$"):
        list(encoder(layouts={"out": TopicLayout(1, 1000)}).encode([given]))


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 400))
def test_windows_keep_all_rows_in_their_order(counts: list[int], window_bytes: int) -> None:
    tables = list(windows([rows(count) for count in counts], window_bytes))
    found = [value for table in tables for value in table.column("value").to_pylist()]
    assert found == [b"%d" % number for count in counts for number in range(count)]
    assert all(table.column("value").num_chunks == 1 for table in tables)
