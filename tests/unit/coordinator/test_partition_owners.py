"""Owners of partitions while a member gives one up, or is away."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.coordinator.consumer_clients import Consumer, ConsumerNode, topic_id
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember
from txnkafka.error_codes import ErrorCode as E


def test_a_member_gets_a_partition_back_that_it_is_giving_up() -> None:
    """The member it was for has left; the group knows the giver as the owner still."""
    node = ConsumerNode({"t": 2})
    one = Consumer(node, "a").join()
    two = Consumer(node, "b").join()
    one.beat()
    assert (one.epoch, one.has) == (2, [(1, 0)])
    assert two.leave().error == E.NONE
    assert one.follow().has == [(1, 0), (1, 1)]


def test_a_member_that_gives_up_a_partition_does_not_take_it_from_the_next_owner() -> None:
    """As where the records of both members are loaded, and the giver's comes last."""
    group, t = ConsumerGroup("g"), topic_id(1)
    giver = ConsumerMember("a", 2, 1, assigned={t: {0: 1}}, revoking={t: {1: 1}})
    for member in (giver, ConsumerMember("b", 3, 2, assigned={t: {1: 3}}), replace(giver, revoking={})):
        group.put(member)
    assert [group.owner_epoch(t, number) for number in (0, 1)] == [2, 3]


def test_a_static_member_that_is_away_keeps_partitions_without_their_epochs() -> None:
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a", instance="i").join()
    assert node.consumers().members["a"].assigned == {topic_id(1): {0: 2}}
    one.leave(-2)
    assert node.consumers().members["a"].assigned == {topic_id(1): {0: 0}}
