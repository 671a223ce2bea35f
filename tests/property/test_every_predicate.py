"""Every comparison with every value near those of a few records, and every pair of comparisons of offset and
timestamp: the chosen records are the model's, and the bounds are as narrow as a comparison allows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.models.predicate import chosen, written
from txnkafka import TopicPartition
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.record.predicate import ANY, NOTHING, bind, bounds_of
from txnkafka.record.predicate_columns import mask_of
from txnkafka.record.predicate_text import parse_predicate

Tree = Any
PARTITION = TopicPartition("orders", 1)
BASE = 10
SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1
# keys, values and headers that are null, empty, and adjacent in byte order
RECORDS = [
    PlainRecord(None, b"", 5, [(b"h", None)]),
    PlainRecord(b"", None, 7, [(b"h", b"a"), (b"h", b"b")]),
    PlainRecord(b"a", b"b", -1, []),
    PlainRecord(b"a\0", b"b\xff", 7, [(b"h", b""), (b"g", b"a")]),
    PlainRecord(b"b", b"c", 6, [(b"h", b"b")]),
]
ROWS = [
    {
        "topic": PARTITION.topic,
        "partition": PARTITION.partition,
        "offset": BASE + number,
        "timestamp": each.timestamp,
        "timestampType": 0,
        "key": each.key,
        "value": each.value,
        "headers": each.headers,
    }
    for number, each in enumerate(RECORDS)
]
BLOBS = [b"", b"\0", b"a", b"a\0", b"a\1", b"b", b"b\xff", b"c"]
VALUES: dict[Any, list[Any]] = {
    "topic": ["order", "orders", "orders0", ""],
    "partition": [0, 1, 2],
    "offset": [SMALLEST, *range(BASE - 1, BASE + len(RECORDS) + 1), LARGEST],
    "timestamp": [SMALLEST, -2, -1, 0, 4, 5, 6, 7, 8, LARGEST],
    "timestampType": [-1, 0, 1],
    "key": BLOBS,
    "value": BLOBS,
    ("length", "key"): [-1, 0, 1, 2, 3, LARGEST],
    ("length", "value"): [-1, 0, 1, 2, 3],
    ("header", "h"): BLOBS,
    ("header", "absent"): BLOBS[:2],
}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
PATTERNS = ("", "%", "_", "a%", "%b", "_%")


def comparisons_of(operand: Any) -> Iterator[Tree]:
    yield "is null", operand
    values = VALUES[operand]
    for value in values:
        yield from ((operator, operand, value) for operator in COMPARISONS)
    for one, other in combinations_with_replacement(values, 2):
        yield "in", operand, one, other
    if not isinstance(values[0], int):
        text = isinstance(values[0], str)
        yield from (("like", operand, each if text else each.encode()) for each in PATTERNS)


def decoded() -> Any:
    data = memoryview(Batch(records=RECORDS, base_offset=BASE).encode())
    index = scan(data)
    batches = SelectedBatches(lambda at, length: data[at : at + length], index, select(index), 0, 1 << 62)
    (columns,) = ChunkDecoder(headers=True).chunks(batches)
    return columns


def check(tree: Tree, columns: Any) -> None:
    """Evaluation, planning and the round trip through text agree with the model."""
    expected = [chosen(tree, row) for row in ROWS]
    predicate = parse_predicate(written(tree))
    bound = bind(predicate, PARTITION)
    assert mask_of(bound, columns).to_pylist() == expected, written(tree)
    bounds = bounds_of(bound)
    for row, yes in zip(ROWS, expected, strict=True):
        inside = (
            bounds.start_offset <= row["offset"] < bounds.end_offset
            and bounds.start_timestamp <= row["timestamp"] < bounds.end_timestamp
        )
        assert inside or not yes, written(tree)
    assert not (bounds.empty and any(expected)), written(tree)
    assert parse_predicate(str(predicate)) == predicate


@pytest.mark.parametrize("operand", VALUES, ids=str)
def test_every_comparison_and_its_negation(operand: Any) -> None:
    columns = decoded()
    for tree in comparisons_of(operand):
        check(tree, columns)
        check(("not", tree), columns)
        check(("and", tree, ("not", ("is null", operand))), columns)
        check(("or", tree, ("is null", operand)), columns)


@pytest.mark.parametrize("join", ["and", "or"])
def test_every_pair_of_comparisons_with_offset_and_timestamp(join: str) -> None:
    columns = decoded()
    around = {"offset": (BASE, BASE + 2, BASE + 4), "timestamp": (5, 6, 7)}
    found = [(how, column, value) for column in around for how in COMPARISONS for value in around[column]]
    for one, other in combinations_with_replacement(found, 2):
        check((join, one, other), columns)
        check(("not", (join, one, other)), columns)


@pytest.mark.parametrize("column", ["offset", "timestamp"])
def test_the_bounds_of_one_comparison_hold_nothing_else(column: str) -> None:
    """If an interval can represent the comparison, a value is within the bounds if, and only if, the
    comparison is true."""
    window = range(-4, 12)
    for operator in (*COMPARISONS, "in"):
        for value in range(-2, 9):
            values = (value, value + 1) if operator == "in" else (value,)
            bounds = bounds_of(parse_predicate(written((operator, column, *values))))
            start, end = (bounds[:2], bounds[2:])[column == "timestamp"]
            inside = [each for each in window if start <= each < end]
            row = dict.fromkeys(("offset", "timestamp"), 0)
            holds = [each for each in window if chosen((operator, column, *values), {**row, column: each})]
            assert inside == (holds if operator != "!=" else list(window))
            assert bounds_of(parse_predicate(f"{column} is null")).empty


@pytest.mark.parametrize("operand", ["topic", "partition"])
def test_what_a_partition_decides_is_decided(operand: str) -> None:
    for tree in comparisons_of(operand):
        for each in (tree, ("not", tree)):
            left = bind(parse_predicate(written(each)), PARTITION)
            assert left == (ANY if chosen(each, ROWS[0]) else NOTHING)
