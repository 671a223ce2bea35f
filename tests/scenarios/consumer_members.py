"""A member of a group of the consumer protocol (KIP-848) in a scenario: it keeps the epoch and the partitions
that it was told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.scenarios.arguments import Arguments, partition_of
from tests.scenarios.member import Member, Members
from tests.scenarios.producer import Request
from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

__all__ = ["ConsumerMembers"]


class ConsumerMembers:
    """``members`` are those of the scenario, of both protocols; the generation of one of this protocol is its
    epoch."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._told: dict[str, list[TopicPartition]] = {}

    def requests(self) -> dict[str, Callable[[Arguments], Request]]:
        """What members of the consumer protocol ask for."""
        return {"enter": self.enter, "beat": self.beat, "depart": self.depart, "look": self.look}

    def enter(self, given: Arguments) -> Request:
        """``enter M g [topics=t,u] [regex=R] [instance=I] [rebalance=60s] [assignor=range]``; ``enter M g
        new`` is another process."""
        name, group, *new = given.words
        member = self._members.by_name.get(name)
        if member is None or new:
            processes = sum(each.startswith(name.lower()) for each in self._members.names)
            member = Member(name, group, given.options.get("instance"), name.lower() + "'" * processes)
            self._members.by_name[name] = member
            self._members.names[member.member_id] = name
        member.arguments = Arguments(given.words, {**member.arguments.options, **given.options})
        self._told[name] = []
        return self._request(member, 0, [], self._everything(member))

    def _everything(self, member: Member) -> dict[str, Any]:
        options = member.arguments
        regex = options.options.get("regex")
        topics = options.text("topics", "" if regex else "t")
        return {
            "rebalance_timeout_ms": options.milliseconds("rebalance", 60_000),
            "topics": tuple(each for each in topics.split(",") if each),
            "regex": regex or "",
            "assignor": options.options.get("assignor"),
        }

    def beat(self, given: Arguments) -> Request:
        """``beat M [has=t-0,t-1|none] [epoch=N] [topics=u]``: a heartbeat. Without ``has`` it takes what it
        was told, and gives up the rest."""
        name = given.words[0]
        member = self._members.by_name[name]
        has = self._told[name]
        if "has" in given.options:
            has = [partition_of(each) for each in given.text("has", "").split(",") if each != "none"]
        changes = {"topics": tuple(given.text("topics", "").split(","))} if "topics" in given.options else {}
        return self._request(member, given.number("epoch", member.generation), has, changes)

    def depart(self, given: Arguments) -> Request:
        """``depart M [away]``: it leaves, a static one perhaps for a while."""
        name, *away = given.words
        return self._request(self._members.by_name[name], -2 if away else -1, None, {})

    def _request(
        self, member: Member, epoch: int, has: list[TopicPartition] | None, changes: dict[str, Any]
    ) -> Request:
        heartbeat = ConsumerHeartbeat(
            member.group, member.member_id, epoch, member.instance, client_id=member.name.lower()
        )._replace(**changes)

        def send(broker: Any, reply: Callable[[Any], None]) -> None:
            request = heartbeat if has is None else heartbeat._replace(owned=_by_id(has, broker))

            def answered(answer: Any) -> None:
                given = answer.assignment
                reply((answer, None if given is None else _by_name(given, broker)))

            broker.groups.consumer_heartbeat(request, answered)

        return Request(send, lambda pair: self._taken(member, *pair))

    def _taken(self, member: Member, answer: Any, told: list[TopicPartition] | None) -> str:
        if answer.error != ErrorCode.NONE:
            return str(answer.error.name)
        member.generation = answer.epoch
        if told is None:
            return f"NONE, epoch {answer.epoch}"
        self._told[member.name] = told
        return f"NONE, epoch {answer.epoch}, may have {_text(told)}"

    def look(self, given: Arguments) -> Request:
        """``look g``: what ConsumerGroupDescribe shows."""
        (group,) = given.words

        def send(broker: Any, reply: Callable[[Any], None]) -> None:
            names = broker.image.topic_names
            broker.groups.describe_consumer([group], lambda rows: reply((rows[0], names)))

        def taken(pair: Any) -> str:
            found, names = pair
            if found.error != ErrorCode.NONE:
                return str(found.error.name)
            lines = [f"{found.state}, epoch {found.epoch}, assigned in {found.assignment_epoch}"]
            for each in found.members:
                has, target = (_text(_named(owned, names)) for owned in (each.assigned, each.target))
                member = each.member
                protocol = "" if member.classic is None else ", classic"
                name = self._members.shown(member.member_id)
                lines.append(f"  {name}{protocol} in epoch {member.epoch} has {has}, is to have {target}")
            return "\n".join(lines)

        return Request(send, taken)


def _by_id(partitions: Iterable[TopicPartition], broker: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    topics = broker.image.topics
    for topic, number in partitions:
        if topic in topics:
            found.setdefault(topics[topic].topic_id, []).append(number)
    return found


def _by_name(assigned: Mapping[str, Iterable[int]], broker: Any) -> list[TopicPartition]:
    return _named(assigned, broker.image.topic_names)


def _named(assigned: Mapping[str, Iterable[int]], names: Mapping[str, str]) -> list[TopicPartition]:
    return sorted(
        TopicPartition(names[topic_id], number)
        for topic_id, numbers in assigned.items() if topic_id in names for number in numbers
    )  # fmt: skip


def _text(partitions: Iterable[TopicPartition]) -> str:
    return " ".join(map(str, partitions)) or "nothing"
