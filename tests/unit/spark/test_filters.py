"""Spark's filters by enumeration: a filter that is pushed down chooses the rows that Spark would choose, to
the microsecond.

Spark 4.0 has no filters, so those here are named and built as in ``pyspark.sql.datasource``: they are
recognised by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.models.builder import Batch, PlainRecord
from txnkafka import TopicPartition
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.record.predicate import bind, bounds_of
from txnkafka.record.predicate_columns import mask_of
from txnkafka.spark.filters import predicate_of, split_filters

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PARTITION = TopicPartition("or%d_r\\s", 1)
RECORDS = [
    PlainRecord(None, b"", 999),
    PlainRecord(b"", None, 1000),
    PlainRecord(b"a", b"b", 1001),
    PlainRecord(b"a\0", b"a", -1),
]


@dataclass(frozen=True)
class Filter:
    attribute: tuple[str, ...]
    value: Any = None


class EqualTo(Filter): ...


class EqualNullSafe(Filter): ...


class GreaterThan(Filter): ...


class GreaterThanOrEqual(Filter): ...


class LessThan(Filter): ...


class LessThanOrEqual(Filter): ...


class In(Filter): ...


class IsNull(Filter): ...


class IsNotNull(Filter): ...


class StringStartsWith(Filter): ...


class StringEndsWith(Filter): ...


class StringContains(Filter): ...


@dataclass(frozen=True)
class Not:
    child: Any


RULES: dict[type, Callable[[Any, Any], bool]] = {
    EqualTo: lambda left, right: left == right,
    GreaterThan: lambda left, right: left > right,
    GreaterThanOrEqual: lambda left, right: left >= right,
    LessThan: lambda left, right: left < right,
    LessThanOrEqual: lambda left, right: left <= right,
    In: lambda left, right: left in right,
    StringStartsWith: lambda left, right: left.startswith(right),
    StringEndsWith: lambda left, right: left.endswith(right),
    StringContains: lambda left, right: right in left,
}


def holds(found: Any, row: dict[str, Any]) -> bool | None:
    """Return Spark's result for a row; None is SQL's unknown."""
    if isinstance(found, Not):
        inner = holds(found.child, row)
        return None if inner is None else not inner
    left = row[found.attribute[0]]
    if isinstance(found, IsNull | IsNotNull):
        return (left is None) == isinstance(found, IsNull)
    return None if left is None else RULES[type(found)](left, found.value)


def rows() -> list[dict[str, Any]]:
    plain = {"topic": PARTITION.topic, "partition": PARTITION.partition, "timestampType": 0}
    return [
        {
            **plain,
            "offset": number,
            "timestamp": EPOCH + timedelta(milliseconds=each.timestamp),
            "key": each.key,
            "value": each.value,
        }
        for number, each in enumerate(RECORDS)
    ]


def decoded() -> Any:
    data = memoryview(Batch(records=RECORDS).encode())
    index = scan(data)
    batches = SelectedBatches(lambda at, length: data[at : at + length], index, select(index), 0, 1 << 62)
    (columns,) = ChunkDecoder().chunks(batches)
    return columns


def times() -> Iterator[datetime]:
    """Generate the microseconds around each millisecond of a record, half of one, and another time zone."""
    for milliseconds in (-2, -1, 0, 998, 999, 1000, 1001, 1002):
        for microseconds in (-1, 0, 1, 500):
            yield EPOCH + timedelta(milliseconds=milliseconds, microseconds=microseconds)
    yield datetime(1970, 1, 1, 2, 0, 1, tzinfo=timezone(timedelta(hours=2)))


COMPARISONS = (EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
BLOBS = (b"", b"\0", b"a", b"a\0", b"b")
TEXTS = ("", "or", "%", "_", "or%", "d_r", "\\", "\\s", "r\\s", PARTITION.topic, "orders")
VALUES: dict[str, tuple[Any, ...]] = {
    "offset": (-(1 << 63), *range(-1, 5), (1 << 63) - 1),
    "partition": (-1, 0, 1, 2),
    "timestampType": (-1, 0, 1),
    "timestamp": tuple(times()),
    "key": (*BLOBS, bytearray(b"a")),
    "value": BLOBS,
    "topic": TEXTS,
}


def filters(column: str) -> Iterator[Any]:
    attribute = (column,)
    yield IsNull(attribute)
    yield IsNotNull(attribute)
    for value in VALUES[column]:
        yield from (kind(attribute, value) for kind in COMPARISONS)
        yield In(attribute, (value,))
        yield In(attribute, (value, VALUES[column][2]))
    if column == "topic":
        for value in TEXTS:
            yield from (k(attribute, value) for k in (StringStartsWith, StringEndsWith, StringContains))


@pytest.mark.parametrize("column", VALUES)
def test_a_pushed_filter_chooses_the_rows_that_spark_would_choose(column: str) -> None:
    columns = decoded()
    left = 0
    for plain in filters(column):
        for found in (plain, Not(plain), Not(Not(plain))):
            expected = [holds(found, row) is True for row in rows()]
            predicate = predicate_of(found)
            if predicate is None:
                left += 1
                continue
            bound = bind(predicate, PARTITION)
            assert mask_of(bound, columns).to_pylist() == expected, found
            bounds = bounds_of(bound)
            for each, yes in zip(RECORDS, expected, strict=True):
                assert not yes or bounds.start_timestamp <= each.timestamp < bounds.end_timestamp, found
            assert not (bounds.empty and any(expected)), found
    assert (left > 0) == (column == "timestamp")


@pytest.mark.parametrize("kind", COMPARISONS)
def test_only_whole_milliseconds_are_pushed_down(kind: type[Filter]) -> None:
    for time in times():
        whole = time.microsecond % 1000 == 0
        assert (predicate_of(kind(("timestamp",), time)) is not None) == whole, time
        assert (predicate_of(In(("timestamp",), (EPOCH, time))) is not None) == whole, time


@pytest.mark.parametrize(
    "found",
    [
        EqualNullSafe(("key",), b"a"),
        EqualTo(("key",), None),
        In(("key",), ()),
        In(("key",), (b"a", None)),
        Not(In(("key",), (b"a", None))),
        EqualTo(("headers",), b"a"),
        EqualTo(("headers", "key"), "a"),
        IsNull(("nothing",)),
        EqualTo(("offset",), True),
        EqualTo(("offset",), 1.0),
        EqualTo(("offset",), "1"),
        EqualTo(("topic",), b"orders"),
        EqualTo(("key",), "a"),
        EqualTo(("timestamp",), 1000),
        EqualTo(("timestamp",), datetime(1970, 1, 1)),
        StringStartsWith(("key",), "a"),
        Not(Not(EqualNullSafe(("key",), b"a"))),
    ],
    ids=str,
)
def test_what_is_left_to_spark(found: Any) -> None:
    sure = GreaterThan(("offset",), 1)
    taken, left = split_filters([found, sure])
    assert (taken, left) == (predicate_of(sure), [found])
