"""A pattern takes no longer than its length by that of a name. What predicates mean is in tests/property."""

from __future__ import annotations

import pytest

from txnkafka.model import TopicPartition
from txnkafka.record.predicate import ANY, NOTHING, Predicate, bind
from txnkafka.record.predicate_text import parse_predicate


@pytest.mark.parametrize(("end", "bound"), [("a", ANY), ("b", NOTHING)])
def test_a_pattern_of_many_parts(end: str, bound: Predicate) -> None:
    """It took exponential time to find that the last part is missing."""
    predicate = parse_predicate(f"topic like '{'%a' * 100}%{end}'")
    assert bind(predicate, TopicPartition("a" * 249, 0)) == bound
