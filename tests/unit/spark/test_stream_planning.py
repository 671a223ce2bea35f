"""Planning of a stream without a log: offsets as JSON, losses, and the division of limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka import TopicPartition
from txnkafka.spark.log_bounds import LogBounds, OffsetRange
from txnkafka.spark.stream.limits import limited, shares
from txnkafka.spark.stream.losses import begins_of, ranges_of
from txnkafka.spark.stream.stream_offsets import StreamOffsets

A, B, C = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0))
partitions = st.sampled_from([TopicPartition(topic, number) for topic in "ab" for number in range(3)])
offsets = st.dictionaries(partitions, st.integers(0, 1 << 62))


@given(offsets, offsets, st.none() | offsets, st.booleans())
def test_offsets_are_the_same_after_json(
    some: dict[TopicPartition, int],
    cleaned: dict[TopicPartition, int],
    first: dict[TopicPartition, int] | None,
    is_initial: bool,
) -> None:
    found = StreamOffsets(some, cleaned, None if is_initial else first, is_initial)
    text = json.dumps(found.to_json())
    assert StreamOffsets.of(json.loads(text)) == found
    assert json.dumps(StreamOffsets.of(json.loads(text)).to_json()) == text


def test_offsets_look_like_those_of_sparks_source() -> None:
    assert StreamOffsets({B: 5, A: 3}).to_json() == {"a": {"0": 3, "1": 5}}
    for wrong in ({"0": 5}, {"a": {"x": 5}}, {"a": {"0": None}}, {"a": [1]}):
        with pytest.raises(ValueError, match="another source wrote the checkpoint"):
            StreamOffsets.of(wrong)


@given(st.dictionaries(partitions, st.integers(0, 1000)), st.integers(1, 2000), st.integers(0, 1 << 40))
def test_shares_use_the_limit_and_not_more(
    available: dict[TopicPartition, int], limit: int, turn: int
) -> None:
    found = shares(available, limit, turn)
    total = sum(available.values())
    assert sum(found.values()) == min(limit, total)
    assert all(1 <= share <= available[name] for name, share in found.items())
    wanted = [name for name, count in available.items() if count]
    if limit >= len(wanted):
        assert sorted(found) == sorted(wanted)


def test_shares_are_proportional_and_take_turns() -> None:
    assert shares({A: 1000, B: 3000, C: 1}, 401) == {A: 100, B: 300, C: 1}
    served = [list(shares({A: 9, B: 9, C: 9}, 1, turn)) for turn in range(3)]
    assert served == [[A], [B], [C]]


@given(
    st.dictionaries(partitions, st.tuples(st.integers(0, 50), st.integers(0, 200)), min_size=1),
    st.integers(1, 60),
)
def test_ranges_tile_the_offsets_within_the_limit(
    logs: dict[TopicPartition, tuple[int, int]], limit: int
) -> None:
    """With any limit every offset is in exactly one batch, and the last one ends where the logs end."""
    begins = {name: start for name, (start, _) in logs.items()}
    ends = {name: start + count for name, (start, count) in logs.items()}
    batches = 0
    while begins != ends:
        stops = limited(begins, ends, limit)
        assert all(begins[name] <= stops[name] <= ends[name] for name in logs)
        assert 0 < sum(stops[name] - begins[name] for name in logs) <= limit
        begins, batches = stops, batches + 1
    assert batches == -(-sum(count for _, count in logs.values()) // limit)


@pytest.mark.parametrize(
    ("start", "bounds", "begins", "losses"),
    [
        ({A: 5}, {A: LogBounds(0, 9, 9)}, {A: 5}, []),
        ({A: 5}, {A: LogBounds(5, 9, 9), B: LogBounds(0, 2, 2)}, {A: 5, B: 0}, []),
        ({A: 9}, {A: LogBounds(0, 7, 9)}, {A: 9}, []),  # read uncommitted before
        ({A: 5}, {A: LogBounds(7, 9, 9)}, {A: 7}, ["a-0: offsets 5 to 6 deleted"]),
        ({}, {A: LogBounds(3, 9, 9)}, {A: 3}, ["a-0: offsets 0 to 2 of the new partition deleted"]),
        ({A: 50}, {A: LogBounds(0, 7, 9)}, {A: 7}, ["a-0 now ends at offset 9; it was read up to 50"]),
        ({A: 5, B: 4}, {A: LogBounds(0, 9, 9)}, {A: 5}, ["a-1 is gone; it was read up to offset 4"]),
        ({A: 5}, {A: LogBounds(0, 9, 9, 5)}, {A: 5}, []),  # all compacted offsets were read
        ({A: 5}, {A: LogBounds(0, 9, 9, 6)}, {A: 5}, ["a-0 was compacted up to offset 6"]),
    ],
)
def test_losses_since_the_last_batch(
    start: dict[TopicPartition, int],
    bounds: dict[TopicPartition, LogBounds],
    begins: dict[TopicPartition, int],
    losses: list[str],
) -> None:
    found = begins_of(StreamOffsets(start), bounds)
    assert found.offsets == begins
    assert len(found.losses) == len(losses)
    for loss, text in zip(found.losses, losses, strict=True):
        assert loss.startswith(text)


def test_compaction_that_was_known_is_no_loss() -> None:
    bounds = {A: LogBounds(0, 9, 9, 6)}
    assert begins_of(StreamOffsets({A: 2}, {A: 6}), bounds).losses == []
    assert len(begins_of(StreamOffsets({A: 2}, {A: 4}), bounds).losses) == 1


def test_the_ranges_of_a_batch() -> None:
    start, end = StreamOffsets({A: 5, B: 4}), StreamOffsets({A: 8, B: 4, C: 2})
    bounds = {A: LogBounds(0, 9, 9), B: LogBounds(0, 9, 9), C: LogBounds(0, 3, 3)}
    assert ranges_of(start, end, bounds) == ([OffsetRange(A, 5, 8), OffsetRange(C, 0, 2)], [])


def test_a_repeated_first_batch_begins_where_it_began() -> None:
    """After a restart Spark asks for the initial offsets again, and they may be others."""
    end = StreamOffsets({A: 8}, first={A: 5})
    for again in (0, 5, 7, 9):
        found = ranges_of(StreamOffsets({A: again}, is_initial=True), end, {A: LogBounds(0, 9, 9)})
        assert found == ([OffsetRange(A, 5, 8)], [])


@pytest.mark.parametrize(
    ("bounds", "ranges", "loss"),
    [
        ({A: LogBounds(6, 9, 9)}, [OffsetRange(A, 6, 8)], "a-0: offset 5 deleted"),
        ({A: LogBounds(9, 9, 9)}, [], "a-0: offsets 5 to 8 deleted"),
        ({A: LogBounds(0, 7, 7)}, [OffsetRange(A, 5, 7)], "a-0 now ends at offset 7; it was to be read up"),
        ({A: LogBounds(0, 6, 9)}, [OffsetRange(A, 5, 6)], "a-0 can now be read up to offset 6"),
        ({A: LogBounds(0, 9, 9, 7)}, [OffsetRange(A, 5, 8)], "a-0 was compacted up to offset 7"),
        ({}, [], "a-0 is gone; it was read up to offset 5"),
    ],
)  # fmt: skip
def test_losses_of_a_repeated_batch(
    bounds: dict[TopicPartition, LogBounds], ranges: list[OffsetRange], loss: str
) -> None:
    found, losses = ranges_of(StreamOffsets({A: 5}), StreamOffsets({A: 8}), bounds)
    assert found == ranges
    assert len(losses) == 1
    assert losses[0].startswith(loss)
