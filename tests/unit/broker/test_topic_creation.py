"""CreateTopics: what one request may create."""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.broker.node import Node
from txnkafka.broker.requests import NewTopic, TopicResult
from txnkafka.error_codes import ErrorCode as E


def created(node: Node, *requests: list[NewTopic]) -> list[list[E]]:
    """The errors of requests that come before anything is durable."""
    answers: dict[int, list[TopicResult]] = {}
    for i, topics in enumerate(requests):
        node.broker.topics.create(topics, partial(answers.__setitem__, i), now_ms=node.now_ms)
    node.settle()
    return [[result.error for result in answers[i]] for i in range(len(requests))]


@pytest.mark.parametrize("count", [6_000, (1 << 31) - 1])
def test_a_negative_count_makes_no_room_for_others(count: int) -> None:
    topics = [NewTopic("big", count), NewTopic("large", 6_000), NewTopic("negative", -(1 << 31))]
    assert created(Node(), topics) == [[E.POLICY_VIOLATION] * 3]


def test_a_negative_count_takes_no_room() -> None:
    topics = [NewTopic("big", 3), NewTopic("negative", -(1 << 31))]
    assert created(Node(), topics) == [[E.NONE, E.INVALID_PARTITIONS]]
