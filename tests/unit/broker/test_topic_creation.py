"""CreateTopics: what one request may create, and names that cannot stand beside each other."""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.broker.node import Node
from txnkafka.broker.requests import NewTopic, TopicResult
from txnkafka.error_codes import ErrorCode as E
from txnkafka.errors import KafkaStorageError


def created(node: Node, *requests: list[NewTopic]) -> list[list[E]]:
    """The errors of requests that come before anything is durable."""
    answers: dict[int, list[TopicResult]] = {}
    for i, topics in enumerate(requests):
        node.request(node.broker.topics.create, topics, partial(answers.__setitem__, i))
    node.settle()
    return [[result.error for result in answers[i]] for i in range(len(requests))]


def test_a_negative_count_makes_no_room_for_others() -> None:
    topics = [NewTopic("big", 6_000), NewTopic("large", 6_000), NewTopic("negative", -(1 << 31))]
    assert created(Node(), topics) == [[E.POLICY_VIOLATION] * 3]


def test_a_negative_count_takes_no_room() -> None:
    topics = [NewTopic("big", 3), NewTopic("negative", -(1 << 31))]
    assert created(Node(), topics) == [[E.NONE, E.INVALID_PARTITIONS]]


def test_a_name_collides_with_that_of_a_topic_in_creation() -> None:
    node = Node()
    pipelined = [NewTopic("p.q", 1)], [NewTopic("p_q", 1), NewTopic("p.r", 1)], [NewTopic("p_r", 1)]
    collides = E.INVALID_TOPIC_EXCEPTION
    assert created(node, *pipelined) == [[E.NONE], [collides, E.NONE], [collides]]
    assert node.create("p_q") == collides  # and with that of one which is there
    assert sorted(node.broker.image.topics) == ["p.q", "p.r"]


def test_names_of_one_request_do_not_collide() -> None:
    """As in Kafka."""
    node = Node()
    requests = [NewTopic("p.q", 1), NewTopic("p_q", 1)], [NewTopic("p.q", 1), NewTopic("p_q", 1)]
    assert created(node, *requests) == [[E.NONE] * 2, [E.TOPIC_ALREADY_EXISTS] * 2]


def test_a_creation_that_failed_leaves_the_name_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise KafkaStorageError("the disk is full")

    node = Node()
    with monkeypatch.context() as patch:
        patch.setattr(node.broker.metadata, "append", refused)
        assert created(node, [NewTopic("p.q", 1)]) == [[E.KAFKA_STORAGE_ERROR]]
    assert created(node, [NewTopic("p_q", 1)]) == [[E.NONE]]
