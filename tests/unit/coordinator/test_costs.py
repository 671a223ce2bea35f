"""What the group coordinator does for a request takes time for what it has, and not for what others have."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.unit.coordinator.consumer_clients import topic_id
from tests.unit.coordinator.group_clients import Node
from txnkafka.coordinator.group.assignors.assignor import GroupSpec, MemberSpec
from txnkafka.coordinator.group.assignors.heterogeneous_assignor import assign_heterogeneous
from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember
from txnkafka.coordinator.group.consumer.member_reconciliation import Reconciliation
from txnkafka.coordinator.group.group_requests import Identity
from txnkafka.coordinator.group.offsets.group_offsets import GroupOffsets
from txnkafka.coordinator.log_event import LogEvent
from txnkafka.model import TopicPartition
from txnkafka.wire.records.group_log import (
    GroupOffset,
    encode_offset_commit_key,
    encode_offset_commit_value,
)

SOME = 500
MANY = 8 * SOME
pytestmark = pytest.mark.usefixtures("without_collections")


def seconds(call: Callable[[], object]) -> float:
    """The best of five runs."""
    spent = []
    for _ in range(5):
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return min(spent)


def pending_offsets(producers: int) -> GroupOffsets:
    """Each producer is about to commit one offset."""
    offsets = GroupOffsets()
    for number in range(producers):
        value = encode_offset_commit_value(GroupOffset("g", "t", number, 1, 0, "", 0, -1, None))
        key = encode_offset_commit_key("g", "t", number)
        offsets.replay(LogEvent(number, number, None, key, value))
    return offsets


@pytest.mark.parametrize("topic", ["t", "u"])
def test_whether_an_offset_is_pending_costs_the_same_with_many_transactions(topic: str) -> None:
    def fetches(producers: int) -> Callable[[], object]:
        of = pending_offsets(producers)
        wanted = [TopicPartition(topic, producers - 1 - number) for number in range(SOME)]
        return lambda: [of.fetch("g", each, is_stable_wanted=True) for each in wanted]

    few, many = seconds(fetches(SOME)), seconds(fetches(MANY))
    assert many < 3 * few


def test_a_tombstone_costs_the_same_with_many_transactions() -> None:
    def tombstones(of: GroupOffsets) -> Callable[[], object]:
        keys = [encode_offset_commit_key("g", "t", number) for number in range(SOME)]
        return lambda: [of.replay(LogEvent(MANY, -1, None, key, None)) for key in keys]

    few, many = (seconds(tombstones(pending_offsets(producers))) for producers in (SOME, MANY))
    assert many < 3 * few


@pytest.mark.parametrize("offsets_of_each", [1, 20])
def test_a_deleted_topic_is_not_looked_for_partition_by_partition_in_each_group(offsets_of_each: int) -> None:
    """Eight times as many partitions, and eight times as many groups."""

    def deletion(partitions: int, groups: int) -> Callable[[], object]:
        node = Node(waits=True)
        for number in range(groups):
            for other in range(offsets_of_each):
                node.commit(1, Identity(f"g{number}"), topic=f"other{other}")
        return lambda: node.coordinator.delete_partitions("t", range(partitions), node.now_ms)

    few, many = seconds(deletion(SOME, 25)), seconds(deletion(MANY, 200))
    assert many < 24 * few


@pytest.mark.parametrize("others", [0, 1])
def test_a_step_of_a_member_takes_time_for_each_partition(others: int) -> None:
    """And not for each pair of what it has and what it is to have."""

    def step(partitions: int) -> Callable[[], object]:
        topic = topic_id(1)
        member = ConsumerMember("m", epoch=1, assigned={topic: dict.fromkeys(range(partitions), 1)})
        target = {topic: tuple(range(others, partitions + others))}
        reconciliation = Reconciliation(2, target, {topic}, None, lambda topic, number: -1, False)
        return lambda: reconciliation.of(member)

    few, many = seconds(step(SOME)), seconds(step(MANY))
    assert many < 24 * few


def test_an_assignment_takes_time_for_each_topic_of_a_member() -> None:
    """And not for each pair of its topics."""

    def assignment(count: int) -> Callable[[], object]:
        topics = tuple(topic_id(number) for number in range(count))
        members = {
            "a": MemberSpec(topics, dict.fromkeys(topics, (0,))),
            "b": MemberSpec(topics[1:], {}),
        }
        group = GroupSpec(members, dict.fromkeys(topics, 1), is_homogeneous=False)
        return lambda: assign_heterogeneous(group)

    few, many = seconds(assignment(SOME)), seconds(assignment(MANY))
    assert many < 24 * few
