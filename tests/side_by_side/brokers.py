"""Both brokers, topics for many conversations at once, and conversations of steps."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tests.side_by_side.cast import Cast, Turn
from tests.side_by_side.member_turns import NAMES
from tests.side_by_side.messages import Request
from tests.side_by_side.naming import topic_uuid
from tests.side_by_side.pair import Compared, Pair
from tests.side_by_side.sides import Conversation, Side, TcpSide
from tests.side_by_side.story import Step, Story

__all__ = ["CONFIG", "ORDERED", "Brokers", "create_topics", "warm_up"]

CONFIG: Final = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transactional.id.expiration.ms": "20000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}
"""Settings of both brokers."""
ORDERED: Final = {
    **CONFIG,
    "group.min.session.timeout.ms": "100",
    "num.network.threads": "1",
    "num.io.threads": "1",
}
"""Those with which the requests of several connections are served in the order in which they come."""
SECONDS: Final = 60
PARTITIONS: Final = 2


class Brokers:
    """One connection to each broker. ``used`` counts the rules that explained a difference, ``asked`` the
    requests by API and version, ``conversations`` those of steps."""

    def __init__(self, ours: Side, kafka: Side, name: str) -> None:
        self._sides, self._name = (ours, kafka), name
        self._number = 0
        self.used: Counter[str] = Counter()
        self.asked: Counter[tuple[str, int]] = Counter()
        self.conversations = 0

    def warm_up(self) -> None:
        """Let both brokers have coordinators."""
        for side in self._sides:
            warm_up(side)

    def pairs(self, count: int) -> list[Pair]:
        """As many conversations, each with a new topic of two partitions on both brokers."""
        self._number += 1
        prefixes = [f"{self._name}{self._number}-{i}-" for i in range(count)]
        pairs = [Pair.of(*self._sides, prefix) for prefix in prefixes]
        names = [f"{prefix}t" for prefix in prefixes]
        for pair, *topic_ids in zip(pairs, *create_topics(self._sides, names), strict=True):
            for conversation, topic_id in zip((pair.ours, pair.kafka), topic_ids, strict=True):
                conversation.naming.topic(topic_id)
        return pairs

    def play(self, turns: Iterable[Turn], pair: Pair | None = None) -> list[Compared]:
        """The turns of the members of a group in a conversation of its own, up to the first difference."""
        pair = pair or self.pairs(1)[0]
        ours, kafka = self._sides
        assert isinstance(ours, TcpSide)
        assert isinstance(kafka, TcpSide)
        topic_ids = [each.naming.actual_topic(topic_uuid(0)) for each in (pair.ours, pair.kafka)]
        cast = Cast(ours, kafka, pair.ours.naming.prefix, NAMES, topic_ids)
        try:
            compared = cast.play(turns)
        finally:
            cast.close()
        self.used += cast.used
        self.asked.update((each.request.api, each.request.version) for each in compared)
        self.forget([pair])
        return compared

    def wait_for_topics(self, pairs: Iterable[Pair]) -> None:
        """Wait until their topics can be written to."""
        for side in self._sides:
            wait_for_topics(Conversation(side, ""), _topics(pairs))

    def forget(self, pairs: Iterable[Pair]) -> None:
        """Delete their topics."""
        names = _topics(pairs)
        for side in self._sides:
            Conversation(side, "").ask(
                Request("DeleteTopics", 5, {"topic_names": names, "timeout_ms": 60_000})
            )

    def run(
        self, pair: Pair, steps: Iterable[Step], *, story: Story | None = None, to_the_end: bool = False
    ) -> list[Compared]:
        """Ask step by step, up to the first difference. A ``story`` is continued."""
        compared: list[Compared] = []
        self.conversations += story is None
        story = story or Story()
        for step in steps:
            request = story.request(step)
            if "until" in step.options:
                pair.wait_for(request, step.options["until"])
            compared.append(self.ask(pair, request))
            if compared[-1].differences and not to_the_end:
                break
            story.answered(step, request, compared[-1].ours)
        self.used += pair.used
        pair.used.clear()
        return compared

    def exchanged(self, frame: bytes) -> list[bytes | None]:
        """What ours and Kafka answer to bytes; None where the connection is closed."""
        for side in self._sides:
            side.send(frame)
        return [side.receive() for side in self._sides]

    def ask(self, pair: Pair, request: Request) -> Compared:
        """One request."""
        self.asked[request.api, request.version] += 1
        return pair.ask(request)

    def shortened(self, steps: Sequence[Step]) -> tuple[list[Step], list[Compared]]:
        """The fewest of the steps that still make a difference, found by leaving out one after the other."""
        left = list(steps)
        compared = self._alone(left)
        left = left[: len(compared)]
        for i in range(len(left) - 2, -1, -1):
            fewer = left[:i] + left[i + 1 :]
            found = self._alone(fewer)
            if found[-1].differences:
                left, compared = fewer[: len(found)], found
        return left, compared

    def shortened_play(
        self, turns: Sequence[Turn], seconds: float = 0.0
    ) -> tuple[list[Turn], list[Compared]]:
        """The same for turns, of which several may be answered by one, and none by others. ``seconds`` pass
        before each play: Kafka's group coordinator hears of its topic behind everybody else."""
        left, compared = list(turns), self._played(turns, seconds)
        for i in range(len(left) - 1, -1, -1):
            fewer = left[:i] + left[i + 1 :]
            found = self._played(fewer, seconds)
            if any(each.differences for each in found):
                left, compared = fewer, found
        return left, compared

    def _played(self, turns: Sequence[Turn], seconds: float) -> list[Compared]:
        (pair,) = self.pairs(1)
        time.sleep(seconds)
        return self.play(turns, pair)

    def _alone(self, steps: Sequence[Step]) -> list[Compared]:
        (pair,) = self.pairs(1)
        found = self.run(pair, steps)
        self.forget([pair])
        return found


def _topics(pairs: Iterable[Pair]) -> list[str]:
    return [f"{pair.ours.naming.prefix}t" for pair in pairs]


def warm_up(side: Side) -> None:
    """Let a broker have coordinators, and no producer with the id 0."""
    find = Request("FindCoordinator", 1, {"key": "warm up", "key_type": 1})
    init = Request("InitProducerId", 1, {"transactional_id": "warm up", "transaction_timeout_ms": 1000})
    group = Request("FindCoordinator", 1, {"key": "warm up", "key_type": 0})
    for request in (find, init, group):
        _until_answered(Conversation(side, ""), request)


def create_topics(sides: Sequence[Side], names: Sequence[str]) -> list[list[str]]:
    """Create topics on each side and wait until they can be written to; their ids."""
    conversations = [Conversation(side, "") for side in sides]
    topics = [{"name": name, "num_partitions": PARTITIONS, "replication_factor": 1} for name in names]
    create = Request("CreateTopics", 7, {"topics": topics, "timeout_ms": 60_000})
    for conversation in conversations:
        conversation.send(create)
    answers = [conversation.receive(create) for conversation in conversations]
    found = []
    for conversation, answer in zip(conversations, answers, strict=True):
        wait_for_topics(conversation, names)
        ids = {each["name"]: each["topic_id"] for each in answer["topics"]}
        found.append([conversation.naming.actual_topic(ids[name]) for name in names])
    return found


def wait_for_topics(conversation: Conversation, names: Sequence[str]) -> None:
    """Wait until topics can be written to."""
    numbers = [{"partition_index": number, "timestamp": -1} for number in range(PARTITIONS)]
    rows = [{"name": name, "partitions": numbers} for name in names]
    _until_right(conversation, Request("Metadata", 12, {"topics": [{"name": name} for name in names]}))
    _until_right(conversation, Request("ListOffsets", 6, {"replica_id": -1, "topics": rows}))


def _until_right(conversation: Conversation, request: Request) -> None:
    _until(lambda: "error_code" not in str(conversation.ask(request)))


def _until_answered(conversation: Conversation, request: Request) -> None:
    _until(lambda: not conversation.ask(request).get("error_code"))


def _until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError("a broker does not get ready")
        time.sleep(0.01)
