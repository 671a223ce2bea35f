"""``GroupHistory``: what a member of a group has sent and received, for the checkers: generations, epochs,
partitions, commits and committed offsets, from the messages of its consumer and producer."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.testing.simulation.client import RETRIABLE, WITHOUT_EFFECT
from txnkafka.testing.simulation.history import Assignment, Commit, FetchedOffset, LostMember, Ownership

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from txnkafka.testing.simulation.history import Partition
    from txnkafka.testing.simulation.program import Program
    from txnkafka.testing.simulation.reading import Reading

_JOINING, _LEAVING = 0, -1  # epochs
_HEARTBEAT: Final = "ConsumerGroupHeartbeat"
_STILL_THERE: Final = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


class GroupHistory:
    """``transaction`` is the number of the open one, -1 without one."""

    def __init__(self, program: Program, reading: Reading) -> None:
        self.transaction = -1
        self._program = program
        self._reading = reading
        self._world = program.world
        self._owned: dict[int, frozenset[Partition]] = {}  # at the request, by the message's identity
        self._commits: dict[int, Commit] = {}
        self._heard_ms: int | None = None  # the last heartbeat after which nothing was left to give up
        self._beats = 0  # heartbeats without a response
        self._target: list[tuple[str, int]] | None = None  # ids of topics, and numbers
        self._counted = {
            "SyncGroup": self._synced, "Heartbeat": self._beat, _HEARTBEAT: self._consumer_beat,
            "OffsetCommit": self._committed, "TxnOffsetCommit": self._committed,
            "OffsetFetch": self._fetched,
        }  # fmt: skip

    # Messages

    def sent(self, name: str, message: Any) -> None:
        """A request leaves the client."""
        if name in ("Heartbeat", _HEARTBEAT):
            self._owned[id(message)] = self._owned_now()
            self._beats += name == _HEARTBEAT
            if name == _HEARTBEAT and message.member_epoch < _JOINING:  # it leaves
                self._heard_ms = None
        elif name in ("OffsetCommit", "TxnOffsetCommit"):
            transaction = self.transaction if name == "TxnOffsetCommit" else -1
            self._commits[id(message)] = self._new_commit(message, transaction)

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """The response to a request has arrived."""
        note: Callable[..., None] | None = self._counted.get(name)
        if note is not None:
            note(version, message, response, sent_us)

    # Members

    def _owned_now(self) -> frozenset[Partition]:
        return frozenset((*each,) for each in self._reading.core.subscription.assigned)

    def _owns(
        self, message: Any, epoch: int, member_id: str, owned: frozenset[Partition],
        assigned: frozenset[Partition], *, sent_us: int, is_joining: bool = False,
    ) -> None:  # fmt: skip
        self._world.history.ownerships.append(
            Ownership(
                self._program.name, message.group_id, member_id, epoch, owned, assigned, sent_us,
                self._world.scheduler.now_us, is_joining,
            )
        )  # fmt: skip

    def _synced(self, version: int, message: Any, response: Any, sent_us: int) -> None:
        if self._is_error("SyncGroup", response.error_code):
            return
        now_us = self._world.scheduler.now_us
        partitions = tuple(partitions_of(bytes(response.assignment)))
        self._world.counts["generation joined"] += 1
        self._world.counts["instance joined"] += message.group_instance_id is not None
        self._world.history.assignments.append(
            Assignment(
                self._program.name, message.group_id, message.generation_id, message.member_id,
                message.group_instance_id, partitions, now_us,
            )
        )  # fmt: skip
        self._owns(
            message,
            message.generation_id,
            message.member_id,
            frozenset(),
            frozenset(partitions),
            sent_us=now_us,
        )

    def _beat(self, version: int, message: Any, response: Any, sent_us: int) -> None:
        owned = self._owned.pop(id(message))
        self._is_error("Heartbeat", response.error_code)
        if response.error_code in _STILL_THERE:
            assigned = owned & self._owned_now()
            self._owns(message, message.generation_id, message.member_id, owned, assigned, sent_us=sent_us)

    def _consumer_beat(self, version: int, message: Any, response: Any, sent_us: int) -> None:
        owned = self._owned.pop(id(message))
        self._beats -= 1
        code, counts = ErrorCode.of(response.error_code), self._world.counts
        is_joining = message.member_epoch == _JOINING
        if is_joining and code is ErrorCode.UNKNOWN_SERVER_ERROR:  # same response as Kafka
            counts["classic group without a generation"] += 1
            return
        if self._is_error(_HEARTBEAT, code):
            self._lost(message, code)
            return
        if message.member_epoch < _JOINING:
            counts["consumer left"] += 1
            if message.member_epoch < _LEAVING:
                counts["static consumer left for a while"] += 1
                self._world.away.add(message.instance_id)
            return
        counts["consumer joined"] += is_joining
        if is_joining and message.instance_id is not None:
            counts["instance joined"] += 1
            counts["static consumer came back"] += message.instance_id in self._world.away
            self._world.away.discard(message.instance_id)
        if is_joining:
            self._target = None
        has = self._owned_now()
        if response.assignment is not None:
            self._target = [
                (topic.topic_id, number)
                for topic in response.assignment.topic_partitions for number in topic.partitions
            ]  # fmt: skip
            has = self._named(self._target)
            counts["partitions taken"] += not has <= owned
            counts["partitions given up"] += not owned <= has
        target = has if self._target is None else self._named(self._target)
        self._owns(
            message, response.member_epoch, response.member_id or message.member_id, owned, has & target,
            sent_us=sent_us, is_joining=is_joining,
        )  # fmt: skip
        self._heard_ms = sent_us // 1000 if owned <= target else None

    def _named(self, target: Iterable[tuple[str, int]]) -> frozenset[Partition]:
        """Return the partitions whose topic id the client can name; later metadata may name more."""
        names = self._reading.core.cluster.names
        return frozenset((names[topic_id], number) for topic_id, number in target if topic_id in names)

    def _lost(self, message: Any, code: ErrorCode) -> None:
        """Keep that the group does not know a member which need not have acted. A copied heartbeat may have
        revoked partitions, and one without a response may have done anything."""
        swarm = self._world.swarm
        has_copies = swarm.hold > 0 or swarm.duplicate > 0
        is_certain = self._heard_ms is not None and not self._beats and not has_copies
        if code is ErrorCode.UNKNOWN_MEMBER_ID and is_certain:
            silent_ms = self._world.scheduler.now_us // 1000 - (self._heard_ms or 0)
            self._world.history.lost_members.append(
                LostMember(self._program.name, message.group_id, message.member_id, silent_ms)
            )
        self._heard_ms = None

    def _is_error(self, api: str, code: int) -> bool:
        if code:
            self._world.counts[f"{api}: {ErrorCode.of(code).name}"] += 1
            self._world.counts["instance fenced"] += code == ErrorCode.FENCED_INSTANCE_ID
        return bool(code)

    # Offsets

    def _new_commit(self, message: Any, transaction: int) -> Commit:
        places = {
            (self._name(topic), row.partition_index): row.committed_offset
            for topic in message.topics for row in topic.partitions
        }  # fmt: skip
        commit = Commit(
            self._program.name, message.group_id, message.generation_id_or_member_epoch, message.member_id,
            message.group_instance_id, places, transaction, self._world.scheduler.now_us,
        )  # fmt: skip
        self._world.history.commits.append(commit)
        return commit

    def _name(self, topic: Any) -> str:
        return topic.name or self._reading.core.cluster.names[topic.topic_id]

    def _committed(self, version: int, message: Any, response: Any, sent_us: int) -> None:
        commit = self._commits.pop(id(message))
        codes = {ErrorCode.of(row.error_code) for topic in response.topics for row in topic.partitions}
        api = "OffsetCommit" if commit.transaction < 0 else "TxnOffsetCommit"
        for code in codes - {ErrorCode.NONE}:
            self._is_error(api, code)
        if codes == {ErrorCode.NONE}:
            commit.acked_us = self._world.scheduler.now_us
            self._world.counts["offsets committed"] += 1
        elif ErrorCode.NONE not in codes:
            commit.is_refused = not codes & RETRIABLE - WITHOUT_EFFECT

    def _fetched(self, version: int, message: Any, response: Any, sent_us: int) -> None:
        groups = response.groups or (response,)
        group_id = message.groups[0].group_id if message.groups else message.group_id
        for group in groups:
            for topic in group.topics:
                for row in topic.partitions:
                    if row.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                        self._world.counts["unstable offset"] += 1
                    if not (row.error_code or group.error_code):
                        self._world.history.fetched_offsets.append(
                            FetchedOffset(
                                self._program.name, group_id, (self._name(topic), row.partition_index),
                                row.committed_offset, message.require_stable, sent_us,
                                self._world.scheduler.now_us,
                            )
                        )  # fmt: skip


def partitions_of(assignment: bytes) -> Iterator[Partition]:
    """Yield the partitions of a ``ConsumerProtocolAssignment``, of any version."""
    if not assignment:
        return
    (topics,), at = struct.unpack_from(">i", assignment, 2), 6
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", assignment, at)
        topic = assignment[at + 2 : at + 2 + size].decode()
        (count,) = struct.unpack_from(">i", assignment, at + 2 + size)
        for number in struct.unpack_from(f">{count}i", assignment, at + 6 + size):
            yield topic, number
        at += 6 + size + 4 * count
