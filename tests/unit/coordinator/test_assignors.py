"""What every assignor keeps, for random groups and after random changes of them; and what each promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from tests.unit.coordinator.consumer_clients import topic_id
from txnkafka.coordinator.group.assignors.assignor import GroupSpec, MemberSpec, Targets
from txnkafka.coordinator.group.consumer.consumer_config import ASSIGNORS

SEEDS = range(150)


def random_group(random: Random, before: Targets, *, is_homogeneous: bool) -> GroupSpec:
    topics = {topic_id(number): random.randrange(1, 9) for number in range(1, random.randrange(2, 6))}
    kept = [member for member in before if random.random() < 0.7]
    members = dict.fromkeys([*kept, *(f"m{random.randrange(30)}" for _ in range(random.randrange(1, 6)))])
    specs = {}
    for member in members:
        count = len(topics) if is_homogeneous else random.randrange(1, len(topics) + 1)
        wanted = tuple(sorted(random.sample(sorted(topics), count)))
        instance = f"i{member}" if random.random() < 0.3 else None
        specs[member] = MemberSpec(wanted, _existing(before.get(member, {}), topics), instance)
    return GroupSpec(specs, topics, is_homogeneous)


def _existing(target: object, topics: dict[str, int]) -> dict[str, tuple[int, ...]]:
    assert isinstance(target, dict)
    kept = {
        name: tuple(each for each in numbers if each < topics[name])
        for name, numbers in target.items()
        if name in topics
    }
    return {name: numbers for name, numbers in kept.items() if numbers}


def places(targets: Targets) -> list[tuple[str, int]]:
    shares = [share for target in targets.values() for share in target.items()]
    return [(name, each) for name, numbers in shares for each in numbers]


def check(group: GroupSpec, targets: Targets) -> None:
    """Each partition of a topic with subscribers is in one target, of one of them."""
    subscribed = {name for member in group.members.values() for name in member.topics}
    wanted = [(name, number) for name in subscribed for number in range(group.partitions[name])]
    assert sorted(places(targets)) == sorted(wanted)
    for member_id, target in targets.items():
        assert set(target) <= set(group.members[member_id].topics)
        assert all(list(numbers) == sorted(numbers) and numbers for numbers in target.values())


@pytest.mark.parametrize("is_homogeneous", [True, False])
@pytest.mark.parametrize("name", ASSIGNORS)
def test_what_two_members_had_goes_to_one(name: str, is_homogeneous: bool) -> None:
    """As after an assignor of a client's own, in a group that was converted."""
    for seed in SEEDS:
        random = Random(seed)
        group = random_group(random, {}, is_homogeneous=is_homogeneous)
        every = {topic: tuple(range(count)) for topic, count in group.partitions.items()}
        members = {
            each: MemberSpec(member.topics, every if random.random() < 0.7 else {})
            for each, member in group.members.items()
        }
        group = GroupSpec(members, group.partitions, is_homogeneous)
        check(group, ASSIGNORS[name](group))


@pytest.mark.parametrize("is_homogeneous", [True, False])
@pytest.mark.parametrize("name", ASSIGNORS)
def test_each_partition_has_one_owner(name: str, is_homogeneous: bool) -> None:
    for seed in SEEDS:
        random, targets = Random(seed), Targets()
        for _ in range(4):
            group = random_group(random, targets, is_homogeneous=is_homogeneous)
            targets = ASSIGNORS[name](group)
            check(group, targets)


def sizes(targets: Targets) -> list[int]:
    return [sum(map(len, target.values())) for target in targets.values()]


def test_uniform_targets_differ_by_one_partition_at_most_and_stay() -> None:
    """What is given up is no more than what others are short of, and nothing where nothing changes."""
    for seed in SEEDS:
        random, targets = Random(seed), Targets()
        for _ in range(4):
            group = random_group(random, targets, is_homogeneous=True)
            before = {member: spec.target for member, spec in group.members.items()}
            targets = ASSIGNORS["uniform"](group)
            assert max(sizes(targets)) - min(sizes(targets)) <= 1
            least = sum(group.partitions.values()) // len(group.members)
            had = sum(min(size, least) for size in sizes(before))
            assert len(set(places(before)) & set(places(targets))) >= had
            assert all(
                set(places({member: before[member]})) >= set(places({member: targets[member]}))
                for member in before
                if sum(map(len, before[member].values())) > least + 1
            )
            same = {
                member: MemberSpec(spec.topics, targets[member], spec.instance_id)
                for member, spec in group.members.items()
            }
            assert ASSIGNORS["uniform"](GroupSpec(same, group.partitions, True)) == targets


def test_uniform_targets_of_different_subscriptions_are_balanced_for_each_topic() -> None:
    """No partition could move to a subscriber of its topic that has two less: with few topics the rounds are
    enough."""
    for seed in SEEDS:
        random, targets = Random(seed), Targets()
        for _ in range(3):
            group = random_group(random, targets, is_homogeneous=False)
            targets = ASSIGNORS["uniform"](group)
            count = dict(zip(targets, sizes(targets), strict=True))
            for member, target in targets.items():
                for name in target:
                    others = [each for each, spec in group.members.items() if name in spec.topics]
                    assert count[member] - min(count[each] for each in others) <= 1


def test_partitions_do_not_move_between_members_that_differ_by_one() -> None:
    """As in UniformHeterogeneousAssignmentBuilder: a move would only exchange the two."""
    t, u = topic_id(1), topic_id(2)
    many, few = {t: (0, 1), u: (0,)}, {t: (2, 3)}
    targets = {"a": few, "b": many, "c": {u: (1, 2)}}
    members = {
        name: MemberSpec((u,) if name == "c" else (t, u), target) for name, target in targets.items()
    }
    group = GroupSpec(members, {t: 4, u: 3}, False)
    assert ASSIGNORS["uniform"](group) == targets


def test_uniform_targets_of_different_subscriptions_stay() -> None:
    for seed in SEEDS:
        group = random_group(Random(seed), {}, is_homogeneous=False)
        targets = ASSIGNORS["uniform"](group)
        same = {name: replace(spec, target=targets[name]) for name, spec in group.members.items()}
        assert ASSIGNORS["uniform"](GroupSpec(same, group.partitions, False)) == targets


def test_ranges_are_contiguous_and_static_members_come_first() -> None:
    for seed in SEEDS:
        group = random_group(Random(seed), {}, is_homogeneous=True)
        targets = ASSIGNORS["range"](group)
        static = sorted(each for each in targets if group.members[each].instance_id is not None)
        order = [*static, *sorted(each for each in targets if each not in static)]
        for name, partitions in group.partitions.items():
            shares = [targets[member].get(name, ()) for member in order]
            assert [number for share in shares for number in share] == list(range(partitions))
            assert [len(share) for share in shares] == sorted(map(len, shares), reverse=True)
            assert max(Counter(map(len, shares))) - min(Counter(map(len, shares))) <= 1


def test_a_group_without_topics_has_nothing_to_assign() -> None:
    for assign in ASSIGNORS.values():
        assert not any(assign(GroupSpec({"a": MemberSpec((), {})}, {}, True)).values())
        assert assign(GroupSpec({}, {}, True)) == {}
