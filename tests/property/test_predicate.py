"""Predicates: parsed from text and evaluated on columns, they choose the records that SQL's rules choose, and
planning never skips one of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.models.builder import Batch, PlainRecord
from tests.models.predicate import chosen, written
from txnkafka import TopicPartition
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.record.predicate import bind, bounds_of
from txnkafka.record.predicate_columns import mask_of, needs_copies, needs_headers
from txnkafka.record.predicate_text import parse_predicate

TOPICS = ["a", "ab", "it's"]
NUMBERS = st.integers(-2, 7) | st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 31])
BLOBS = st.binary(max_size=2) | st.sampled_from([b"abc", b"a\nb"])
PATTERNS = st.sampled_from(["%", "a%", "_b%", "%c", "a_", "", "ab", "%b%"])
NAMES = st.sampled_from(["trace", "a'b", "é"])

number_operands = st.sampled_from(
    ["partition", "offset", "timestamp", "timestampType", ("length", "key"), ("length", "value")]
)
blob_operands = st.sampled_from(["key", "value"]) | st.tuples(st.just("header"), NAMES)
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def comparisons_with(
    operands: st.SearchStrategy[Any], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(comparisons, operands, values),
        st.builds(lambda o, v: ("in", o, *v), operands, st.lists(values, min_size=1, max_size=3)),
        st.tuples(st.just("is null"), operands),
    )


leaves = st.one_of(
    comparisons_with(number_operands, NUMBERS),
    comparisons_with(blob_operands, BLOBS),
    st.tuples(st.just("like"), blob_operands, PATTERNS),
    comparisons_with(st.just("topic"), st.sampled_from(TOPICS)),
    st.tuples(st.just("like"), st.just("topic"), PATTERNS),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.builds(lambda parts: ("and", *parts), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: ("or", *parts), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)
headers = st.lists(st.tuples(NAMES.map(str.encode), st.none() | BLOBS), max_size=3)
plain_records = st.builds(
    PlainRecord,
    key=st.none() | BLOBS,
    value=st.none() | BLOBS,
    timestamp=st.integers(-1, 6),
    headers=headers,
    offset_delta=st.none(),
)
batches = st.builds(
    Batch,
    records=st.lists(plain_records, min_size=1, max_size=6),
    codec=st.sampled_from([0, 2]),
    log_append_time=st.none() | st.just(3),
)


@given(
    trees,
    batches,
    st.sampled_from(TOPICS).flatmap(lambda t: st.builds(TopicPartition, st.just(t), st.integers(0, 2))),
)
def test_the_chosen_records_are_those_that_sql_chooses(
    tree: Any, batch: Batch, topic_partition: TopicPartition
) -> None:
    data = batch.encode()
    records = [each for columns in decoded(data, views=False) for each in records_of(columns)]
    rows = [
        {
            "topic": topic_partition.topic,
            "partition": topic_partition.partition,
            "offset": each.offset,
            "timestamp": each.timestamp,
            "timestampType": int(each.timestamp_type),
            "key": each.key,
            "value": each.value,
            "headers": written_headers,
        }
        for each, written_headers in zip(records, (r.headers for r in batch.records), strict=True)
    ]
    expected = [chosen(tree, row) for row in rows]
    predicate = bind(parse_predicate(written(tree)), topic_partition)
    for views in (False, True):
        if views and needs_copies(predicate):
            continue
        found = [
            m for c in decoded(data, views=views, headers=True) for m in mask_of(predicate, c).to_pylist()
        ]
        assert found == expected
    if not needs_headers(predicate):
        (columns,) = decoded(data, views=False, headers=False)
        assert mask_of(predicate, columns).to_pylist() == expected
    (columns,) = decoded(data, views=False)
    read_back = bind(parse_predicate(str(predicate)), topic_partition)
    assert mask_of(read_back, columns).to_pylist() == expected
    bounds = bounds_of(predicate)
    for row, yes in zip(rows, expected, strict=True):
        if yes:
            assert bounds.start_offset <= row["offset"] < bounds.end_offset
            assert bounds.start_timestamp <= row["timestamp"] < bounds.end_timestamp
    assert not (bounds.empty and any(expected))


def decoded(data: bytes, *, views: bool, headers: bool = True) -> list[Any]:
    index = scan(data)
    source = memoryview(data)
    decoder = ChunkDecoder(headers=headers, views=views)
    chosen_batches = SelectedBatches(
        lambda at, length: source[at : at + length], index, select(index), 0, 1 << 62
    )
    return list(decoder.chunks(chosen_batches))
