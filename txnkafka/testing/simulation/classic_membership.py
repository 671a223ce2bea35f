"""``ClassicMembership``: membership of a group with the classic protocol.

The member joins, sends the assignment of all members if it is the leader, sends heartbeats, and leaves. It
revokes all its partitions before it rejoins.

Source: ``AbstractCoordinator``, ``ConsumerCoordinator``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from txnkafka.coordinator.group.group_requests import JoinGroup, Protocol, SyncGroup
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.history import Assignment
from txnkafka.testing.simulation.membership import LEFT_OUT, MOST_JOINS, Membership
from txnkafka.testing.simulation.network import PATIENCE_US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.testing.simulation.client import Client, Steps
    from txnkafka.testing.simulation.history import Topic

_CONSUMER: Final = "consumer"
_RANGE: Final = "range"


class ClassicMembership(Membership):
    """The leader assigns the partitions to the members round robin."""

    kind = "zombie"
    is_classic = True

    def __init__(
        self, client: Client, group_id: str, topics: Sequence[Topic], instance_id: str | None
    ) -> None:
        super().__init__(client, group_id, topics, instance_id)
        swarm = client.world.swarm
        self._patience_us = PATIENCE_US + 1_000 * (swarm.session_timeout_ms + swarm.rebalance_timeout_ms)

    def join(self) -> Steps:
        """Join and get an assignment. Returns NONE, or the error that ends the process."""
        for _ in range(MOST_JOINS):
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
        name = swarm.assignor if len(swarm.reader_protocols) == 1 else _RANGE  # as the other members
        request = JoinGroup(
            self.identity, _CONSUMER, (Protocol(name, _subscription(self._topics)),),
            swarm.session_timeout_ms, swarm.rebalance_timeout_ms, self._client.name,
        )  # fmt: skip

        def perform(broker: Any, reply: Any) -> None:
            broker.groups.join(request, reply)

        return perform

    def _sync(self, joined: Any) -> Steps:
        identity = self.identity
        assignments = {} if joined.leader != joined.member_id else self._divided(joined.members)
        request = SyncGroup(identity, assignments, _CONSUMER, joined.protocol)

        def perform(broker: Any, reply: Any) -> None:
            broker.groups.sync(request, reply)

        answer, _ = yield from self._client.ask("SyncGroup", perform, patience_us=self._patience_us)
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        if answer.error != ErrorCode.NONE:
            return answer.error
        self._alive_us = self._world.scheduler.now_us
        self.assigned = _partitions_of(answer.assignment)
        self._world.counts["generation joined"] += 1
        self._world.counts["instance joined"] += identity.group_instance_id is not None
        self._world.history.assignments.append(
            Assignment(
                self._client.name, identity.group_id, identity.generation, identity.member_id,
                identity.group_instance_id, tuple(self.assigned), self._alive_us,
            )
        )  # fmt: skip
        self._owns(frozenset(), self._alive_us, is_joining=False)
        return ErrorCode.NONE

    def _divided(self, members: Sequence[tuple[str, str | None, bytes]]) -> dict[str, bytes]:
        """Return the round-robin assignment of all partitions to the members."""
        in_order = sorted(members, key=lambda member: (member[1] or "", member[0]))
        parts: dict[str, list[TopicPartition]] = {member_id: [] for member_id, _, _ in in_order}
        for number, partition in enumerate(self._partitions):
            parts[in_order[number % len(in_order)][0]].append(partition)
        return {member_id: _assignment(partitions) for member_id, partitions in parts.items()}

    def keep_alive(self) -> Steps:
        """Send a heartbeat if due. Returns NONE while the member belongs to the generation."""
        swarm, now_us = self._world.swarm, self._world.scheduler.now_us
        if now_us - self._alive_us < swarm.session_timeout_ms * 250:
            return ErrorCode.NONE
        identity = self.identity

        def perform(broker: Any, reply: Any) -> None:
            reply(broker.groups.heartbeat(identity))

        answer, _ = yield from self._client.ask("Heartbeat", perform)
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        self._alive_us = now_us
        if answer in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):  # still the same generation
            self._owns(frozenset(self.assigned), now_us, is_joining=False)
        self._note("Heartbeat", answer)
        return answer

    def leave(self) -> Steps:
        """Leave the group, ignoring the response."""
        identity = self.identity

        def perform(broker: Any, reply: Any) -> None:
            def left(error: ErrorCode, errors: list[ErrorCode]) -> None:
                reply(error or errors[0])

            broker.groups.leave(identity.group_id, [identity], left)

        answer, _ = yield from self._client.ask("LeaveGroup", perform)
        self._world.counts["member left"] += answer == ErrorCode.NONE
        self.forget()


def _subscription(topics: Sequence[str]) -> bytes:
    """Return version 0 of ``ConsumerProtocolSubscription``."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def _assignment(partitions: Sequence[TopicPartition]) -> bytes:
    """Return version 0 of ``ConsumerProtocolAssignment``."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    rows = b"".join(
        struct.pack(">h", len(topic))
        + topic.encode()
        + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in topics.items()
    )
    return struct.pack(">hi", 0, len(topics)) + rows + struct.pack(">i", -1)


def _partitions_of(assignment: bytes) -> list[TopicPartition]:
    if not assignment:
        return []
    found = []
    (topics,), at = struct.unpack_from(">i", assignment, 2), 6
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", assignment, at)
        topic = assignment[at + 2 : at + 2 + size].decode()
        (count,) = struct.unpack_from(">i", assignment, at + 2 + size)
        numbers = struct.unpack_from(f">{count}i", assignment, at + 6 + size)
        found += [TopicPartition(topic, number) for number in numbers]
        at += 6 + size + 4 * count
    return found
