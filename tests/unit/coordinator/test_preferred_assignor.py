"""The assignor of a group of the consumer protocol: the one that most members name
(``ConsumerGroup.computePreferredServerAssignor``)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.coordinator.consumer_clients import Consumer, ConsumerNode
from txnkafka.error_codes import ErrorCode as E


def settled(*consumers: Consumer) -> None:
    """Heartbeats until nothing changes any more."""
    for _ in range(6):
        for consumer in consumers:
            assert consumer.follow().error == E.NONE


def test_the_assignor_of_most_members_counts() -> None:
    node = ConsumerNode({"t": 2, "u": 2})
    both: dict[str, Any] = {"topics": ("t", "u")}
    one, two = Consumer(node, "a", **both).join(assignor="range"), Consumer(node, "b", **both).join()
    settled(one, two)
    assert (one.has, two.has) == ([(1, 0), (2, 0)], [(1, 1), (2, 1)])


@pytest.mark.parametrize(("before", "second", "has"), [
    ("uniform", "range", [(1, 1)]), ("range", "uniform", [(1, 0)]), (None, "range", [(1, 1)]),
])  # fmt: skip
def test_of_assignors_with_as_many_votes_the_new_one_counts(
    before: str | None, second: str, has: list[tuple[int, int]]
) -> None:
    """The range assignor gives the first partition to the static member, which is the second one here."""
    node = ConsumerNode({"t": 2})
    first = Consumer(node, "first", assignor=before).join()
    Consumer(node, "second", assignor=second, instance="i").join()
    assert first.follow().has == has


def test_a_member_that_changes_the_assignor_of_its_group_raises_the_epoch() -> None:
    """Kafka 4.4; before, the targets were computed again only after another change."""
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a").join(assignor="uniform")
    one.beat(assignor="uniform")
    assert (one.epoch, node.consumers().epoch) == (2, 2)
    one.beat(assignor="range")
    assert (one.epoch, node.consumers().epoch) == (3, 3)
    one.beat()
    assert node.consumers().epoch == 3


def test_an_assignor_that_a_minority_names_changes_nothing() -> None:
    node = ConsumerNode({"t": 1})
    members = [Consumer(node, name).join(assignor="uniform") for name in "abc"]
    members[0].beat(assignor="range")
    assert node.consumers().epoch == 4
    members[1].beat(assignor="range")
    assert node.consumers().epoch == 5


def test_a_group_with_two_assignors_of_as_many_votes_settles() -> None:
    """With Kafka 4.4, each heartbeat of the member that names range raises the epoch."""
    node = ConsumerNode({"t": 2})
    one, two = (Consumer(node, name).join(assignor=name) for name in ("uniform", "range"))
    settled(one, two)
    epoch = node.consumers().epoch
    settled(one, two)
    assert (node.consumers().epoch, node.consumers().state) == (epoch, "Stable")
