"""Changes of one thing follow each other."""

from __future__ import annotations

import pytest

from tests.unit.broker.node import Node
from txnkafka.broker.turns import Turn


def turns(*things: str) -> tuple[Node, list[Turn]]:
    node = Node()
    return node, [node.broker.turns.of(thing) for thing in things]


def test_the_next_change_begins_when_the_one_before_has_ended() -> None:
    node, (one, two, other, three) = turns("a", "a", "b", "a")
    seen: list[str] = []
    one.take(lambda: seen.append("first"))
    two.take(lambda: seen.append("second"))
    other.take(lambda: seen.append("other"))
    node.broker.durability.run_soon()
    assert seen == ["first", "other"]
    one.end()
    node.broker.durability.run_soon()
    assert seen == ["first", "other", "second"]
    two.end()
    three.take(lambda: seen.append("third"))
    assert seen[-1] == "third"


def test_a_change_that_cannot_begin_is_over() -> None:
    node, (one, two, three, bad, after) = turns("a", "a", "a", "b", "b")
    seen: list[str] = []
    one.take(lambda: None)
    two.take(lambda: [][0])  # type: ignore[func-returns-value]
    three.take(lambda: seen.append("third"))
    one.end()
    node.broker.durability.run_soon()
    assert seen == ["third"]
    with pytest.raises(IndexError):
        bad.take(lambda: [][0])  # type: ignore[func-returns-value]
    after.take(lambda: seen.append("next"))
    assert seen[-1] == "next"


def test_a_change_is_over_when_a_call_that_it_waits_for_raises() -> None:
    """Of the first one, and of one that has waited; its request hears of it, and nobody else's."""
    node, (one, two, three) = turns("a", "a", "a")
    broker, seen, errors = node.broker, list[str](), list[Exception]()
    broker.failures.owner = errors.append
    one.take(lambda: broker.durability.soon(lambda: [][0]))  # type: ignore[func-returns-value]
    two.take(lambda: broker.durability.soon(lambda: [][0]))  # type: ignore[func-returns-value]
    broker.failures.owner = None
    three.take(lambda: seen.append("third"))
    broker.durability.run_soon()
    assert (seen, [type(each) for each in errors]) == (["third"], [IndexError] * 2)


def test_a_change_that_is_over_ends_nobody_elses() -> None:
    node, (one, two, three) = turns("a", "a", "a")
    seen: list[str] = []
    one.take(lambda: None)
    two.take(lambda: seen.append("second"))
    three.take(lambda: seen.append("third"))
    for _ in range(2):
        one.end()
        node.broker.durability.run_soon()
    three.end()
    assert seen == ["second"]
