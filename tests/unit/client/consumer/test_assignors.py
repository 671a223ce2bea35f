"""Assignors: every partition has one subscribed member, balanced, sticky, and the same as in Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.client.consumer.assignors import ASSIGNORS, Assignment, GroupSubscription, MemberSubscription
from txnkafka.model import TopicPartition

# Written by Apache Kafka 4.4.0: assignor; topics with their numbers of partitions; members with topics, owned
# partitions, generation and instance id = their partitions.
KAFKA = Path(__file__).with_name("assignments_of_kafka.txt").read_text(encoding="utf-8").splitlines()


def partitions_of(text: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each[0], int(each[1:])) for each in text.split())


def member_of(assignor: str, text: str) -> tuple[str, MemberSubscription]:
    member_id, topics, owned, generation, instance_id = text.split(",")
    member = MemberSubscription(tuple(topics.split()), instance_id=instance_id or None)
    if assignor == "cooperative-sticky":
        member = member._replace(owned=partitions_of(owned), generation_id=int(generation))
    elif assignor == "sticky" and int(generation) >= 0:
        member = member._replace(previous=(partitions_of(owned), int(generation)))
    return member_id, member


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_an_assignor_assigns_like_kafkas(assignor: str) -> None:
    lines = [line for line in KAFKA if line.startswith(f"{assignor};")]
    assert len(lines) > 30
    for line in lines:
        described, wanted = line.split(" =;")
        _, counts, *members = described.split(";")
        group = GroupSubscription(
            {each[0]: int(each[1:]) for each in counts.split()},
            dict(member_of(assignor, each) for each in members),
        )
        expected = dict(zip(group.members, map(partitions_of, wanted.split(";")), strict=True))
        found = ASSIGNORS[assignor](group)
        assert {key: set(each) for key, each in found.items()} == {
            key: set(each) for key, each in expected.items()
        }, line


@st.composite
def groups(draw: st.DrawFn, *, equal: bool | None = None) -> GroupSubscription:
    counts = draw(st.dictionaries(st.sampled_from("pqrst"), st.integers(1, 9), min_size=1))
    is_equal = draw(st.booleans()) if equal is None else equal
    names = sorted(counts)
    size = draw(st.integers(1, 7))
    some = st.lists(st.sampled_from(names), min_size=1, unique=True)
    topics = [names if is_equal else draw(some) for _ in range(size)]
    return GroupSubscription(
        counts, {f"m{i}": MemberSubscription(tuple(each)) for i, each in enumerate(topics)}
    )


def remembered(group: GroupSubscription, assigned: Assignment, generation: int) -> GroupSubscription:
    """Return the group with members that own what they were assigned."""
    members = {
        key: member._replace(
            owned=tuple(assigned[key]), generation_id=generation, previous=(tuple(assigned[key]), generation)
        )
        if key in assigned
        else member
        for key, member in group.members.items()
    }
    return group._replace(members=members)


def check_complete(group: GroupSubscription, assigned: Assignment) -> None:
    every = [each for some in assigned.values() for each in some]
    assert len(every) == len(set(every))
    assert set(every) == set(group.all_partitions())
    assert assigned.keys() == group.members.keys()
    for key, some in assigned.items():
        assert {each.topic for each in some} <= set(group.members[key].topics)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(group=groups())
def test_each_partition_has_one_subscribed_member(assignor: str, group: GroupSubscription) -> None:
    check_complete(group, ASSIGNORS[assignor](group))


@pytest.mark.parametrize("assignor", ["roundrobin", "sticky", "cooperative-sticky"])
@given(group=groups(equal=True))
def test_members_of_equal_topics_have_equal_shares(assignor: str, group: GroupSubscription) -> None:
    sizes = [len(some) for some in ASSIGNORS[assignor](group).values()]
    assert max(sizes) - min(sizes) <= 1


@given(group=groups(equal=True))
def test_ranges_are_balanced_and_consecutive_in_each_topic(group: GroupSubscription) -> None:
    assigned = ASSIGNORS["range"](group)
    for topic, count in group.partitions.items():
        numbers = [[each.partition for each in some if each.topic == topic] for some in assigned.values()]
        sizes = [len(some) for some in numbers]
        assert max(sizes) - min(sizes) <= 1
        assert sorted(each for some in numbers for each in some) == list(range(count))
        assert all(some == list(range(some[0], some[0] + len(some))) for some in numbers if some)


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
@given(group=groups())
def test_without_a_change_members_keep_their_partitions(assignor: str, group: GroupSubscription) -> None:
    first = ASSIGNORS[assignor](group)
    again = ASSIGNORS[assignor](remembered(group, first, 1))
    assert {key: set(some) for key, some in again.items()} == {key: set(some) for key, some in first.items()}


@given(group=groups(equal=True), gone=st.integers(0, 6))
def test_only_the_partitions_of_a_member_that_left_move(group: GroupSubscription, gone: int) -> None:
    first = ASSIGNORS["sticky"](group)
    left = [key for place, key in enumerate(group.members) if place != gone % len(group.members)]
    smaller = remembered(group, first, 1)
    smaller = smaller._replace(members={key: smaller.members[key] for key in left})
    second = ASSIGNORS["sticky"](smaller)
    assert all(set(first[key]) <= set(second[key]) for key in left)


@given(group=groups(), new=st.sampled_from(["a", "z"]))
def test_a_partition_that_moves_is_first_given_up(group: GroupSubscription, new: str) -> None:
    first = ASSIGNORS["cooperative-sticky"](group)
    names = tuple(sorted(group.partitions))
    larger = group._replace(members={**group.members, new: MemberSubscription(names)})
    owned = remembered(larger, first, 1)
    second = ASSIGNORS["cooperative-sticky"](owned)
    for key, some in second.items():
        others = {each for other, member in owned.members.items() if other != key for each in member.owned}
        assert not set(some) & others
    given_up = {key: [each for each in some if each in second[key]] for key, some in first.items()}
    third = ASSIGNORS["cooperative-sticky"](remembered(larger, {**given_up, new: second[new]}, 2))
    check_complete(larger, third)


def test_a_partition_claimed_twice_belongs_to_the_newer_generation() -> None:
    partition = TopicPartition("q", 0)
    members = {
        "a": MemberSubscription(("q",), (partition,), 3),
        "b": MemberSubscription(("q",), (partition,), 4),
    }
    assigned = ASSIGNORS["cooperative-sticky"](GroupSubscription({"q": 1}, members))
    assert assigned == {"a": [], "b": [partition]}
    members["a"] = members["a"]._replace(generation_id=4)
    both = ASSIGNORS["cooperative-sticky"](GroupSubscription({"q": 1}, members))
    assert both == {"a": [], "b": []}  # nobody, until both have given it up


def test_owned_partitions_that_were_deleted_are_not_assigned() -> None:
    member = MemberSubscription(("q",), (TopicPartition("q", 7), TopicPartition("r", 0)), 1)
    for name in ("sticky", "cooperative-sticky"):
        both = member._replace(previous=(member.owned, 1))
        assert ASSIGNORS[name](GroupSubscription({"q": 1}, {"a": both})) == {"a": [TopicPartition("q", 0)]}


def test_static_members_come_first() -> None:
    members = {
        "a": MemberSubscription(("q",)),
        "z": MemberSubscription(("q",), instance_id="1"),
    }
    group = GroupSubscription({"q": 2}, members)
    wanted = {"z": [TopicPartition("q", 0)], "a": [TopicPartition("q", 1)]}
    assert ASSIGNORS["range"](group) == ASSIGNORS["roundrobin"](group) == wanted
