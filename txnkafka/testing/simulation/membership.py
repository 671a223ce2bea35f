"""``Membership``: how a client is a member of a group, and what it commits there. Its methods are steps of
the client.

What the protocols do differently is in ``classic_membership`` and ``consumer_membership``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from txnkafka.broker.groups import Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.client import BACKOFF_US
from txnkafka.testing.simulation.history import Commit, FetchedOffset, Ownership

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.testing.simulation.client import Client, Steps
    from txnkafka.testing.simulation.history import Partition, Topic

__all__ = [
    "LEFT_OUT", "MOST_JOINS", "Membership", "OffsetsOfGroup", "committing", "fetched", "judged", "to_commit"
]  # fmt: skip

LEFT_OUT: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
"""What the member has is not what it is to have, or it is no member any more: it joins again."""
MOST_JOINS: Final = 100


class OffsetsOfGroup(NamedTuple):
    """The answer to OffsetFetch."""

    error: ErrorCode
    offsets: Mapping[TopicPartition, int]
    unstable: int  # partitions


class Membership:
    """``identity`` is what the requests of the member carry, ``assigned`` what it owns. ``kind`` is what a
    member of this protocol is called when it commits, and the group has gone on without it."""

    kind: ClassVar[str]

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

    def forget(self) -> None:
        """Be a new process, which is no member yet."""
        self.identity = self.identity._replace(generation=-1, member_id="")
        self.assigned = []

    # Members

    def join(self) -> Steps:
        """Get an assignment. Returns NONE, or why the process cannot go on."""
        raise NotImplementedError

    def keep_alive(self) -> Steps:
        """A heartbeat, when it is time. Returns NONE while the member may keep what it has."""
        raise NotImplementedError

    def leave(self) -> Steps:
        """Leave the group, whatever it answers."""
        raise NotImplementedError

    def _note(self, api: str, error: ErrorCode) -> None:
        """Count an error; a member that is not known gets another id."""
        if error != ErrorCode.NONE:
            self._world.counts[f"{api}: {error.name}"] += 1
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.forget()

    def _owns(self, owned: frozenset[Partition], sent_us: int, *, is_joining: bool) -> None:
        """An answer has shown that the member had ``owned`` when it asked, and has ``assigned`` now."""
        group_id, epoch, member_id, _ = self.identity
        now_us = self._world.scheduler.now_us
        has = frozenset(self.assigned)
        self._world.history.ownerships.append(
            Ownership(self._client.name, group_id, member_id, epoch, owned, has, sent_us, now_us, is_joining)
        )

    # Offsets

    def committed(self) -> Steps:
        """Where to begin in each assigned partition, once no transaction can change that. Returns the error
        and the positions."""
        while True:
            answer = yield from fetched(
                self._client, self.identity.group_id, self.assigned, self._as_member()
            )
            if answer.error != ErrorCode.NONE:
                return answer.error, {}
            if not answer.unstable:
                return ErrorCode.NONE, {each: max(0, answer.offsets[each]) for each in self.assigned}
            self._world.counts["unstable offset"] += 1
            yield self._client.random.randrange(BACKOFF_US // 2, BACKOFF_US)
            error = yield from self.keep_alive()
            if error != ErrorCode.NONE:
                return error, {}

    def _as_member(self) -> tuple[str | None, int]:
        """Who asks for offsets; the classic protocol does not say it."""
        return None, -1

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

    def perform(broker: Any, reply: Any) -> None:
        offsets = to_commit(commit.offsets, broker)
        broker.groups.commit(identity, offsets, reply, version=9)

    answer, is_uncertain = yield from client.ask("OffsetCommit", perform, can_be_late=False)
    return judged(client, commit, answer, is_uncertain=is_uncertain)


def to_commit(offsets: Mapping[Partition, int], broker: Any) -> dict[TopicPartition, OffsetToCommit]:
    """Offsets of topics as they are now."""
    topics = broker.image.topics
    return {
        TopicPartition(*each): OffsetToCommit(offset, topic_id=topics[each[0]].topic_id)
        for each, offset in offsets.items()
    }


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


def fetched(
    client: Client,
    group_id: str,
    partitions: Sequence[TopicPartition],
    member: tuple[str | None, int] = (None, -1),
) -> Steps:
    """Ask for committed offsets that no open transaction may change."""
    wanted = list(partitions)

    def perform(broker: Any, reply: Any) -> None:
        def answered(error: ErrorCode, found: Mapping[TopicPartition, Any]) -> None:
            offsets = {each: row.offset for each, row in found.items() if row.error == ErrorCode.NONE}
            reply(OffsetsOfGroup(error, offsets, len(found) - len(offsets)))

        broker.groups.fetch(group_id, wanted, answered, require_stable=True, member=member)

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
