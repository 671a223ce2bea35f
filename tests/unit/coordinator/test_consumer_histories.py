"""Random lives of consumer groups: after each step the log has the whole state, and no partition has two
owners; in the end every partition has one."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.coordinator.consumer_clients import Consumer, ConsumerNode, state_of, subscription, topic_id
from tests.unit.coordinator.group_clients import Member
from txnkafka.coordinator.group.classic.classic_group import ClassicGroup
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.group_partition import GroupPartition, record_of
from txnkafka.error_codes import ErrorCode as E

SEEDS = range(60)
STEPS = 60
TOPICS = ("t", "u", "v")
REGEXES = ("", "t|u", "[u-z]", "nothing")


class History:
    """One group with members of both protocols; what each says is right or wrong."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.node = ConsumerNode({"t": 2, "u": 3})
        self.consumers = [Consumer(self.node, f"c{i}") for i in range(4)]
        self.consumers[3].instance = "i"
        protocols = (("range", subscription("t", "u")),)
        self.classics = [Member(self.node, protocols=protocols, session_ms=45_000) for _ in range(2)]

    def step(self) -> None:
        name = self.random.choice(
            ["join", "follow", "follow", "follow", "keep", "leave", "subscribe", "regex", "wrong", "time",
             "topics", "classic", "classic", "away", "restart"]
        )  # fmt: skip
        getattr(self, name)(self.random.choice(self.consumers))

    def join(self, one: Consumer) -> None:
        one.topics = self.random.sample(TOPICS, self.random.randrange(4))
        one.assignor = self.random.choice([None, "range", "uniform"])
        one.join()

    def follow(self, one: Consumer) -> None:
        one.follow()

    def keep(self, one: Consumer) -> None:
        one.beat()

    def leave(self, one: Consumer) -> None:
        one.leave()

    def away(self, one: Consumer) -> None:
        self.consumers[3].leave(-2)

    def subscribe(self, one: Consumer) -> None:
        one.beat(topics=tuple(self.random.sample(TOPICS, 2)), owned=one.owned)

    def regex(self, one: Consumer) -> None:
        one.beat(regex=self.random.choice(REGEXES))

    def wrong(self, one: Consumer) -> None:
        one.beat(epoch=self.random.randrange(1, 9), owned={topic_id(1): [self.random.randrange(4)]})

    def time(self, one: Consumer) -> None:
        self.node.wait(self.random.choice([1, 1_000, 11_000, 20_000]))

    def topics(self, one: Consumer) -> None:
        there = self.node.image.topics
        name = self.random.choice(TOPICS)
        if name not in there:
            self.node.create(name, self.random.randrange(1, 4))
        elif self.random.random() < 0.3:
            self.node.delete(name)
        else:
            self.node.grow(name, len(there[name].partitions))

    def classic(self, one: Consumer) -> None:
        member = self.random.choice(self.classics)
        what = self.random.choice(["join", "sync", "heartbeat", "heartbeat", "leave"])
        if what == "join":
            member.join(needs_known_id=True)
        elif what == "sync":
            member.sync(**{member.member_id.replace("-", "_"): b""})
        else:
            getattr(member, what)()

    def restart(self, one: Consumer) -> None:
        self.check()
        self.node.start()

    def check(self) -> None:
        """What is loaded is what is there."""
        loaded = GroupPartition()
        for event in self.node.events:
            loaded.replay(event)
        live, read = self.node.coordinator.partitions.loaded[0].groups.get("g"), loaded.groups.get("g")
        assert isinstance(live, ConsumerGroup) == isinstance(read, ConsumerGroup)
        if isinstance(live, ConsumerGroup) and isinstance(read, ConsumerGroup):
            assert state_of(live) == state_of(read)
            owned = [
                (name, number)
                for member in live.members.values()
                for each in (member.assigned, member.revoking)
                for name, numbers in each.items()
                for number in numbers
            ]
            assert len(owned) == len(set(owned))
        elif isinstance(live, ClassicGroup) and live.state.value == "Stable":
            assert isinstance(read, ClassicGroup)
            assert record_of(live) == record_of(read)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_log_has_what_the_group_is(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
        history.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_in_the_end_every_partition_has_an_owner(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    node = history.node
    node.wait(600_000)  # all that are there by now are gone
    for consumer in history.consumers:
        consumer.topics = ("t", "u", "v")
        assert consumer.join(regex="").error == E.NONE
    for _ in range(8):
        for consumer in history.consumers:
            assert consumer.follow().error == E.NONE
    topics = node.image.topics.values()
    wanted = [(topic.topic_id, number) for topic in topics for number in topic.partitions]
    shares = [share for consumer in history.consumers for share in consumer.owned.items()]
    has = [(name, number) for name, numbers in shares for number in numbers]
    assert sorted(has) == sorted(wanted)
    assert node.consumers().state == "Stable"
    history.check()
