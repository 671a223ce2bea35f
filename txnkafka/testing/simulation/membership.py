"""``Membership``: how a client is a member of a group of the classic protocol, and what it commits there.

It joins, brings the assignment of all members if it leads, says that it is alive, and leaves. Its methods are
steps of the client.

Source: ``AbstractCoordinator``, ``ConsumerCoordinator``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.broker.groups import Identity, JoinGroup, OffsetToCommit, Protocol, SyncGroup
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.client import BACKOFF_US
from txnkafka.testing.simulation.history import Assignment, Commit, FetchedOffset
from txnkafka.testing.simulation.network import PATIENCE_US

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.testing.simulation.client import Client, Steps
    from txnkafka.testing.simulation.history import Topic

__all__ = ["LEFT_OUT", "Membership", "OffsetsOfGroup"]

LEFT_OUT: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS}
)
"""The next generation is under way or there, without this member: it joins again."""
_CONSUMER: Final = "consumer"
_RANGE: Final = "range"
_MOST_JOINS: Final = 100


class OffsetsOfGroup(NamedTuple):
    """The answer to OffsetFetch."""

    error: ErrorCode
    offsets: Mapping[TopicPartition, int]
    unstable: int  # partitions


class Membership:
    """``identity`` is what the requests of the member carry, ``assigned`` what it owns."""

    def __init__(
        self, client: Client, group_id: str, topics: Sequence[Topic], instance_id: str | None
    ) -> None:
        self.identity = Identity(group_id, -1, "", instance_id)
        self.assigned: list[TopicPartition] = []
        self._client = client
        self._world = client.world
        self._topics = [topic.name for topic in topics]
        self._partitions = [
            TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)
        ]
        self._alive_us = 0  # when the group has last heard of it
        swarm = client.world.swarm
        self._patience_us = PATIENCE_US + 1_000 * (swarm.session_timeout_ms + swarm.rebalance_timeout_ms)

    def forget(self) -> None:
        """Be a new process, which is no member yet."""
        self.identity = self.identity._replace(generation=-1, member_id="")
        self.assigned = []

    # Members

    def join(self) -> Steps:
        """Get an assignment. Returns NONE, or why the process cannot go on."""
        for _ in range(_MOST_JOINS):
            self.assigned = []
            answer, _ = yield from self._client.ask(
                "JoinGroup", self._join_request(), patience_us=self._patience_us
            )
            if answer is None:
                return ErrorCode.REQUEST_TIMED_OUT
            error = answer.error
            if error == ErrorCode.NONE:
                self.identity = self.identity._replace(
                    member_id=answer.member_id, generation=answer.generation
                )
                error = yield from self._sync(answer)
                if error == ErrorCode.NONE:
                    return error
            elif error == ErrorCode.MEMBER_ID_REQUIRED:
                self.identity = self.identity._replace(member_id=answer.member_id)
                continue
            self._note("JoinGroup", error)
            if error not in LEFT_OUT:
                return error
        self._world.gave_up += 1
        return ErrorCode.REQUEST_TIMED_OUT

    def _join_request(self) -> Any:
        swarm = self._world.swarm
        request = JoinGroup(
            self.identity, _CONSUMER, (Protocol(_RANGE, _subscription(self._topics)),),
            swarm.session_timeout_ms, swarm.rebalance_timeout_ms, self._client.name,
        )  # fmt: skip

        def perform(broker: Any, reply: Any, now_ms: int) -> None:
            broker.groups.join(request, reply, now_ms=now_ms)

        return perform

    def _sync(self, joined: Any) -> Steps:
        identity = self.identity
        assignments = {} if joined.leader != joined.member_id else self._divided(joined.members)
        request = SyncGroup(identity, assignments, _CONSUMER, joined.protocol)

        def perform(broker: Any, reply: Any, now_ms: int) -> None:
            broker.groups.sync(request, reply, now_ms=now_ms)

        answer, _ = yield from self._client.ask("SyncGroup", perform, patience_us=self._patience_us)
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        if answer.error != ErrorCode.NONE:
            return answer.error
        self._alive_us = self._world.scheduler.now_us
        self.assigned = [TopicPartition(*each) for each in _partitions_of(answer.assignment)]
        self._world.counts["generation joined"] += 1
        self._world.counts["instance joined"] += identity.group_instance_id is not None
        self._world.history.assignments.append(
            Assignment(
                self._client.name, identity.group_id, identity.generation, identity.member_id,
                identity.group_instance_id, tuple(self.assigned), self._alive_us,
            )
        )  # fmt: skip
        return ErrorCode.NONE

    def _divided(self, members: Sequence[tuple[str, str | None, bytes]]) -> dict[str, bytes]:
        """All partitions, to the members one after the other."""
        in_order = sorted(members, key=lambda member: (member[1] or "", member[0]))
        parts: dict[str, list[TopicPartition]] = {member_id: [] for member_id, _, _ in in_order}
        for number, partition in enumerate(self._partitions):
            parts[in_order[number % len(in_order)][0]].append(partition)
        return {member_id: " ".join(map(str, partitions)).encode() for member_id, partitions in parts.items()}

    def keep_alive(self) -> Steps:
        """A heartbeat, when it is time. Returns NONE while the member is one of the generation."""
        swarm, now_us = self._world.swarm, self._world.scheduler.now_us
        if now_us - self._alive_us < swarm.session_timeout_ms * 250:
            return ErrorCode.NONE
        identity = self.identity

        def perform(broker: Any, reply: Any, now_ms: int) -> None:
            reply(broker.groups.heartbeat(identity, now_ms=now_ms))

        answer, _ = yield from self._client.ask("Heartbeat", perform)
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        self._alive_us = now_us
        self._note("Heartbeat", answer)
        return answer

    def leave(self) -> Steps:
        """Leave the group, whatever it answers."""
        identity = self.identity

        def perform(broker: Any, reply: Any, now_ms: int) -> None:
            error, errors = broker.groups.leave(identity.group_id, [identity], now_ms=now_ms)
            reply(error or errors[0])

        answer, _ = yield from self._client.ask("LeaveGroup", perform)
        self._world.counts["member left"] += answer == ErrorCode.NONE
        self.forget()

    def _note(self, api: str, error: ErrorCode) -> None:
        """Count an error; a member that is not known gets another id."""
        if error != ErrorCode.NONE:
            self._world.counts[f"{api}: {error.name}"] += 1
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.forget()

    # Offsets

    def committed(self) -> Steps:
        """Where to begin in each assigned partition, once no transaction can change that. Returns the error
        and the positions."""
        while True:
            answer = yield from fetched(self._client, self.identity.group_id, self.assigned)
            if answer.error != ErrorCode.NONE:
                return answer.error, {}
            if not answer.unstable:
                return ErrorCode.NONE, {each: max(0, answer.offsets[each]) for each in self.assigned}
            self._world.counts["unstable offset"] += 1
            yield self._client.random.randrange(BACKOFF_US // 2, BACKOFF_US)
            error = yield from self.keep_alive()
            if error != ErrorCode.NONE:
                return error, {}

    def new_commit(self, offsets: Mapping[TopicPartition, int], transaction: int = -1) -> Commit:
        """A commit of this member, about to be sent."""
        group_id, generation, member_id, instance_id = self.identity
        places: dict[tuple[str, int], int] = {(*each,): offset for each, offset in offsets.items()}
        commit = Commit(
            self._client.name, group_id, generation, member_id, instance_id, places, transaction,
            self._world.scheduler.now_us,
        )  # fmt: skip
        self._world.history.commits.append(commit)
        return commit

    def commit(self, offsets: Mapping[TopicPartition, int]) -> Steps:
        """Commit offsets, without a transaction. Returns the error."""
        error = yield from committing(self._client, self.identity, self.new_commit(offsets))
        self._note("OffsetCommit", error)
        return error


def committing(client: Client, identity: Identity, commit: Commit) -> Steps:
    """Send a commit until it is decided. It is never late: it would put the offset back, in Kafka, too."""
    offsets = {TopicPartition(*each): OffsetToCommit(offset) for each, offset in commit.offsets.items()}

    def perform(broker: Any, reply: Any, now_ms: int) -> None:
        broker.groups.commit(identity, offsets, reply, version=9, now_ms=now_ms)

    answer, is_uncertain = yield from client.ask("OffsetCommit", perform, can_be_late=False)
    return judged(client, commit, answer, is_uncertain=is_uncertain)


def judged(client: Client, commit: Commit, answer: Any, *, is_uncertain: bool) -> ErrorCode:
    """Note what became of a commit."""
    if answer is None:
        return ErrorCode.REQUEST_TIMED_OUT
    error: ErrorCode = next(iter(answer.values()))
    if error == ErrorCode.NONE:
        commit.acked_us = client.world.scheduler.now_us
        client.world.counts["offsets committed"] += 1
    else:
        commit.is_refused = not is_uncertain
    return error


def fetched(client: Client, group_id: str, partitions: Sequence[TopicPartition]) -> Steps:
    """Ask for committed offsets that no open transaction may change."""
    wanted = list(partitions)

    def perform(broker: Any, reply: Any, now_ms: int) -> None:
        def answered(error: ErrorCode, found: Mapping[TopicPartition, Any]) -> None:
            offsets = {each: row.offset for each, row in found.items() if row.error == ErrorCode.NONE}
            reply(OffsetsOfGroup(error, offsets, len(found) - len(offsets)))

        broker.groups.fetch(group_id, wanted, answered, require_stable=True)

    world = client.world
    invoked_us = world.scheduler.now_us
    answer, _ = yield from client.ask("OffsetFetch", perform)
    if answer is None:
        return OffsetsOfGroup(ErrorCode.REQUEST_TIMED_OUT, {}, 0)
    at_us = world.scheduler.now_us
    for partition, offset in answer.offsets.items():
        world.history.fetched_offsets.append(
            FetchedOffset(client.name, group_id, partition, offset, True, invoked_us, at_us)
        )
    return answer


def _subscription(topics: Sequence[str]) -> bytes:
    """Version 0 of ``ConsumerProtocolSubscription``."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def _partitions_of(assignment: bytes) -> list[tuple[str, int]]:
    found = []
    for name in assignment.decode().split():
        topic, _, number = name.rpartition("-")
        found.append((topic, int(number)))
    return found
