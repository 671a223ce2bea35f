"""Kafka's assignors of consumer groups give the same partitions to the same members.

Random groups that change from step to step; the members come in the same order on both sides.
"""

from __future__ import annotations

import subprocess
from random import Random

import pytest

from tests.conformance.kafka_log import OPTIONS, compiled
from tests.unit.coordinator.consumer_clients import topic_id
from tests.unit.coordinator.test_assignors import random_group
from txnkafka.coordinator.group.assignors.assignor import GroupSpec, Targets
from txnkafka.coordinator.group.consumer.consumer_config import ASSIGNORS

GROUPS = 1500
STEPS = 4
NUMBERS = {topic_id(number): number for number in range(1, 20)}


def line(name: str, group: GroupSpec) -> str:
    """A group as the Java process reads it."""
    words = [name, str(int(group.is_homogeneous)), ",".join(str(each) for each in group.partitions.values())]
    for member_id, member in group.members.items():
        topics = ",".join(str(NUMBERS[name]) for name in member.topics)
        words.append(f"{member_id};{member.instance_id or '-'};{topics};{shown(dict(member.target))}")
    return "\t".join(words)


def shown(target: dict[str, tuple[int, ...]]) -> str:
    places = [(NUMBERS[name], each) for name, numbers in target.items() for each in numbers]
    return ",".join(f"{topic}.{number}" for topic, number in sorted(places))


def answer(group: GroupSpec, targets: Targets) -> str:
    return "\t".join(f"{each};{shown(dict(targets.get(each, {})))}" for each in sorted(group.members))


@pytest.mark.parametrize("is_homogeneous", [True, False])
@pytest.mark.parametrize("name", ASSIGNORS)
def test_kafka_assigns_the_same(name: str, is_homogeneous: bool) -> None:
    asked, ours = [], []
    for seed in range(GROUPS):
        random, targets = Random(seed), Targets()
        for _ in range(STEPS):
            group = random_group(random, targets, is_homogeneous=is_homogeneous)
            targets = ASSIGNORS[name](group)
            asked.append(line(name, group))
            ours.append(answer(group, targets))
    command = ["java", *OPTIONS, "-cp", compiled(), "Assignors"]
    done = subprocess.run(command, input="\n".join(asked), capture_output=True, text=True, check=True)
    kafka = done.stdout.splitlines()
    assert len(kafka) == len(ours)
    differing = [pair for pair in zip(asked, ours, kafka, strict=True) if pair[1] != pair[2]]
    assert not differing, differing[:2]
