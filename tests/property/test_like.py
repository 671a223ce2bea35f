"""LIKE on bytes and on topics, with backslashes, bytes that are no UTF-8 and characters that are special in
regular expressions: what matches is what a matcher of one character after the other says."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.models.builder import Batch, PlainRecord
from txnkafka import TopicPartition
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.record.predicate import ANY, Comparison, Operand, bind
from txnkafka.record.predicate_columns import mask_of

VALUES = st.lists(st.sampled_from(list(b"aA1%_\\\n\0.*$^(x\xc3\xa9\xff")), max_size=6).map(bytes)
PATTERNS = st.lists(st.sampled_from(list(b"a1%%__\\\\\\.\n\0$(\xff")), max_size=6).map(bytes)


def matches(pattern: bytes, value: bytes) -> bool:
    if not pattern:
        return not value
    if pattern.startswith(b"%"):
        return any(matches(pattern[1:], value[at:]) for at in range(len(value) + 1))
    if pattern.startswith(b"_"):
        return bool(value) and matches(pattern[1:], value[1:])
    escaped = pattern.startswith(b"\\") and len(pattern) > 1
    wanted, rest = pattern[escaped : escaped + 1], pattern[escaped + 1 :]
    return value.startswith(wanted) and matches(rest, value[1:])


@given(st.lists(VALUES, min_size=1, max_size=4), PATTERNS)
@example([b"a\\", b"a\\\\", b"a"], rb"%\\")
@example([b"\\a", b"\\\\a", b"a"], rb"\\%")
@example([b"\\", b"", b"\\\\"], b"\\")
@example([b"1a", b"1\\a"], rb"%\a")
def test_what_is_like_a_pattern(values: list[bytes], pattern: bytes) -> None:
    data = memoryview(Batch(records=[PlainRecord(None, value) for value in values]).encode())
    index = scan(data)
    batches = SelectedBatches(lambda at, length: data[at : at + length], index, select(index), 0, 1 << 62)
    (columns,) = ChunkDecoder().chunks(batches)
    expected = [matches(pattern, value) for value in values]
    assert mask_of(Comparison(Operand("value"), "like", (pattern,)), columns).to_pylist() == expected
    negative = mask_of(Comparison(Operand("value"), "not like", (pattern,)), columns).to_pylist()
    assert negative == [not each for each in expected]


@given(VALUES, PATTERNS)
def test_topics_that_are_like_a_pattern(value: bytes, pattern: bytes) -> None:
    like = Comparison(Operand("topic"), "like", (pattern.decode("latin-1"),))
    bound = bind(like, TopicPartition(value.decode("latin-1"), 0))
    assert (bound == ANY) == matches(pattern, value)
