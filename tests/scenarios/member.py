"""A member of a group in a scenario: it keeps what it was told, and its requests are values that can be sent
later, or again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios.arguments import Arguments, partition_of
from tests.scenarios.producer import Request
from txnkafka.coordinator.group.group_requests import Identity, Joined, JoinGroup, Protocol, Synced, SyncGroup
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records.consumer_protocol import decode_assignment, encode_assignment

__all__ = ["Member", "Members", "subscription"]


@dataclass
class Member:
    """``generation`` and ``protocol`` as the broker gave them; ``name`` is that of the scenario."""

    name: str
    group: str
    instance: str | None = None
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    arguments: Arguments = field(default_factory=lambda: Arguments([], {}))  # of its last JoinGroup

    def identity(self, given: Arguments) -> Identity:
        """Its own identity, but for what the command says."""
        generation = given.number("generation", self.generation)
        return Identity(self.group, generation, self.member_id, self.instance)


@dataclass
class Members:
    """All of a scenario, by name. Ids are shown as names."""

    by_name: dict[str, Member] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # by member id, also of members that were replaced

    def shown(self, member_id: str) -> str:
        """The name of a member; its id begins with that of its client, or with its instance id."""
        begin = member_id.rpartition("-")[0]
        of_instance = [each.name for each in self.by_name.values() if each.instance == begin]
        return self.names.get(member_id, of_instance[-1] if of_instance else begin.upper() or "none")

    def _learns(self, member: Member, member_id: str) -> None:
        member.member_id = member_id
        self.names[member_id] = member.name

    def join(self, given: Arguments) -> Request:
        """``join M GROUP [instance=I] [session=30s] [rebalance=60s] [protocols=range] [version=3] [id=N]``. A
        member joins again with its id; ``join M GROUP new`` is another process."""
        name, group, *new = given.words
        member = self.by_name.get(name)
        if member is None or new:
            instance = given.options.get("instance")
            self.by_name.pop(name, None)
            member = self.by_name[name] = Member(name, group, instance)
        if "id" in given.options:
            member.member_id = self.by_name[given.text("id", "")].member_id
        options = {**member.arguments.options, **given.options}
        member.arguments = given = Arguments(given.words, options)
        version = given.number("version", 3)
        protocols = given.text("protocols", "range").split(",")
        topics = given.text("topics", "t").split(",")
        request = JoinGroup(
            member.identity(Arguments([], {})), "consumer",
            tuple(Protocol(each, subscription(topics)) for each in protocols),
            given.milliseconds("session", 30_000), given.milliseconds("rebalance", 60_000), name.lower(),
            needs_known_id=version >= 4, may_skip_assignment=version >= 9,
        )  # fmt: skip

        def send(broker: Any, reply: Callable[[Any], None]) -> None:
            broker.groups.join(request, reply)
            broker.advance(broker.now_ms)  # the delay of a first rebalance may be none

        return Request(send, lambda joined: self._joined(member, joined))

    def _joined(self, member: Member, joined: Joined) -> str:
        if joined.error == ErrorCode.MEMBER_ID_REQUIRED:
            self._learns(member, joined.member_id)
        if joined.error != ErrorCode.NONE:
            return joined.error.name
        self._learns(member, joined.member_id)
        member.generation, member.protocol = joined.generation, joined.protocol
        shown = f"NONE, generation {joined.generation} {joined.protocol}, leader {self.shown(joined.leader)}"
        if joined.members:
            shown += f" of {' '.join(self.shown(each[0]) for each in joined.members)}"
        return shown + (", assigned before" if joined.skip_assignment else "")

    def sync(self, given: Arguments) -> Request:
        """``sync M [generation=N] [M=a N=b]``: the leader brings assignments; ``M=[t-0,t-1]`` is one as
        clients of Kafka write it."""
        name, *assigned = given.words
        member = self.by_name[name]
        pairs = [word.split("=") for word in assigned]
        assignments = {self.by_name[each].member_id: _assignment(value) for each, value in pairs}
        request = SyncGroup(member.identity(given), assignments, "consumer", member.protocol)

        def taken(synced: Synced) -> str:
            return synced.error.name if synced.error else f"NONE, {_shown(synced.assignment)}"

        return Request(lambda broker, reply: broker.groups.sync(request, reply), taken)

    def heartbeat(self, given: Arguments) -> Request:
        """``heartbeat M [generation=N]``."""
        identity = self.by_name[given.words[0]].identity(given)
        return Request(
            lambda broker, reply: reply(broker.groups.heartbeat(identity)),
            lambda error: error.name,
        )

    def leave(self, given: Arguments) -> Request:
        """``leave M N``: several at once."""
        leaving = [self.by_name[name].identity(given) for name in given.words]
        group = leaving[0].group_id

        def taken(answer: tuple[ErrorCode, list[ErrorCode]]) -> str:
            error, errors = answer
            return error.name if error else " ".join(each.name for each in errors)

        return Request(
            lambda broker, reply: broker.groups.leave(group, leaving, lambda *answer: reply(answer)),
            taken,
        )

    def leave_instance(self, given: Arguments) -> Request:
        """``leave-instance GROUP I``: what an administrator asks for."""
        group, instance = given.words
        leaving = [Identity(group, -1, "", instance)]
        return Request(
            lambda broker, reply: broker.groups.leave(group, leaving, lambda *answer: reply(answer)),
            lambda answer: answer[1][0].name,
        )

    def requests(self) -> dict[str, Callable[[Arguments], Request]]:
        """What members ask for."""
        return {
            "join": self.join, "sync": self.sync, "heartbeat": self.heartbeat, "leave": self.leave,
            "leave-instance": self.leave_instance,
        }  # fmt: skip

    def who(self, group: str, given: Arguments) -> Identity:
        """Who commits: the member ``as=M``, or nobody in particular."""
        if "as" in given.options:
            return self.by_name[given.text("as", "")].identity(given)
        return Identity(group, given.number("generation", -1))


def _assignment(value: str) -> bytes:
    """A text, or partitions in brackets in version 0 of ``ConsumerProtocolAssignment``."""
    if not value.startswith("["):
        return value.encode()
    topics: dict[str, list[int]] = {}
    for each in filter(None, value.strip("[]").split(",")):
        topic, number = partition_of(each)
        topics.setdefault(topic, []).append(number)
    return encode_assignment(sorted(topics.items()), 0)


def _shown(assignment: bytes) -> str:
    if not assignment.startswith(b"\0"):
        return assignment.decode() or "nothing"
    fields = decode_assignment(assignment) or {"assigned_partitions": ()}
    assigned = fields["assigned_partitions"]
    rows = [(each["topic"], number) for each in assigned for number in each["partitions"]]
    return f"[{','.join(f'{topic}-{number}' for topic, number in sorted(rows))}]"


def subscription(topics: Any) -> bytes:
    """Version 0 of ``ConsumerProtocolSubscription``."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return bytes(2) + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
