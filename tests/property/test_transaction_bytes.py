"""What is packed for ``__transaction_state`` is what the generic writer makes of the tables, errors too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models.transaction_bytes import key_of, value_of
from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.model import TopicPartition
from txnkafka.wire.records import (
    TransactionMetadata,
    TransactionState,
    encode_transaction_key,
    encode_transaction_value,
)
from txnkafka.wire.records.transaction_bytes import MOST_REMEMBERED
from txnkafka.wire.schema import SchemaError

LONGEST = 32_767


def integers(bits: int, *usual: int) -> st.SearchStrategy[int]:
    """Integers of so many bits, often the usual ones, and a few that have one bit too many."""
    largest = 2 ** (bits - 1) - 1
    fitting = st.integers(-largest - 1, largest)
    return st.one_of(st.sampled_from((*usual, 0)), fitting, fitting, st.integers(-largest - 2, largest + 1))


NAMES = st.one_of(
    st.text(max_size=5),
    st.sampled_from(("t", "é", "\ud800", *("x" * size for size in (126, 127, 128, LONGEST, LONGEST + 1)))),
)
TOPICS = st.builds(TopicPartition, NAMES, integers(32, 0, 1, 2))
MANY = st.builds(
    lambda topic, count: frozenset(TopicPartition(topic, number) for number in range(count)),
    st.text(max_size=3),
    st.sampled_from((MOST_REMEMBERED, MOST_REMEMBERED + 1, 126, 127, 128, 16_400)),
)
STATES = st.builds(
    TransactionMetadata,
    transactional_id=st.just("tx"),
    producer_id=integers(64, -1),
    previous_producer_id=integers(64, -1),
    next_producer_id=integers(64, -1),
    producer_epoch=integers(16, -1),
    next_producer_epoch=integers(16, -1),
    transaction_timeout_ms=integers(32),
    state=st.sampled_from(TransactionState),
    topic_partitions=st.one_of(st.frozensets(TOPICS, max_size=12), MANY),
    last_update_timestamp=integers(64),
    start_timestamp=integers(64, -1),
    client_transaction_version=integers(16, 1, 2),
    last_producer_epoch=st.one_of(st.just(-1), st.integers(-(2**15), 2**15 - 1)),
)


def outcome(write: Callable[..., bytes], *arguments: Any) -> bytes | str:
    """The bytes, or the text of the error."""
    try:
        return write(*arguments)
    except SchemaError as error:
        return f"{error}"


@given(STATES, st.integers(0, 2))
def test_values_are_those_of_the_tables(metadata: TransactionMetadata, version: int) -> None:
    if metadata.state == TransactionState.EMPTY:
        metadata = metadata._replace(topic_partitions=frozenset())
    expected = outcome(value_of, metadata, version)
    for _ in range(2):  # the partitions may be remembered the second time
        assert outcome(encode_transaction_value, metadata, version) == expected


@given(NAMES)
@example("x" * (LONGEST + 1))
@example("é" * (LONGEST // 2 + 1))
def test_keys_are_those_of_the_tables(transactional_id: str) -> None:
    assert outcome(encode_transaction_key, transactional_id) == outcome(key_of, transactional_id)


@pytest.mark.slow
@pytest.mark.parametrize(("above", "version"), [(-3, 1), (-2, 0), (1, 1)])
def test_a_value_that_no_reader_accepts_is_not_written(above: int, version: int) -> None:
    metadata = TransactionMetadata(
        "tx", 1, -1, -1, 0, -1, 60_000, TransactionState.ONGOING,
        frozenset(TopicPartition("t", number) for number in range(MAX_SCHEMA_VALUES + above)), 0, 0, 0,
    )  # fmt: skip
    expected = outcome(value_of, metadata, version)
    assert outcome(encode_transaction_value, metadata, version) == expected
