"""Changes of one thing follow each other."""

from __future__ import annotations

import pytest

from tests.unit.broker.node import Node


def test_the_next_change_begins_when_the_one_before_has_ended() -> None:
    broker = Node().broker
    seen: list[str] = []
    broker.turns.take("a", lambda: seen.append("first"))
    broker.turns.take("a", lambda: seen.append("second"))
    broker.turns.take("b", lambda: seen.append("other"))
    broker.durability.run_soon()
    assert seen == ["first", "other"]
    broker.turns.end("a")
    broker.durability.run_soon()
    assert seen == ["first", "other", "second"]
    broker.turns.end("a")
    broker.turns.take("a", lambda: seen.append("third"))
    assert seen[-1] == "third"


def test_a_change_that_cannot_begin_is_over() -> None:
    broker = Node().broker
    seen: list[str] = []
    broker.turns.take("a", lambda: None)
    broker.turns.take("a", lambda: [][0])  # type: ignore[func-returns-value]
    broker.turns.take("a", lambda: seen.append("third"))
    broker.turns.end("a")
    broker.durability.run_soon()
    assert seen == ["third"]
    with pytest.raises(IndexError):
        broker.turns.take("b", lambda: [][0])  # type: ignore[func-returns-value]
    broker.turns.take("b", lambda: seen.append("next"))
    assert seen[-1] == "next"
