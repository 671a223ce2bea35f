"""``Membership``: a client's membership of a group, and its commits. The methods are steps of the client.

``classic_membership`` and ``consumer_membership`` implement the two protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from txnkafka.coordinator.group.group_requests import Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.client import BACKOFF_US
from txnkafka.testing.simulation.history import Commit, FetchedOffset, Ownership

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.testing.simulation.client import Client, Steps
    from txnkafka.testing.simulation.history import Partition, Topic

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
"""Errors after which a member rejoins: its assignment has changed, or it is no longer a member."""
MOST_JOINS: Final = 100


class OffsetsOfGroup(NamedTuple):
    """The response to OffsetFetch."""

    error: ErrorCode
    offsets: Mapping[TopicPartition, int]
    unstable: int  # number of partitions


class Membership:
    """``identity`` is sent in the member's requests, ``assigned`` are its partitions. ``kind`` names a member
    of this protocol that commits after the group has removed it."""

    kind: ClassVar[str]
    is_classic: ClassVar[bool] = False

    def __init__(
        self, client: Client, group_id: str, topics: Sequence[Topic], instance_id: str | None
    ) -> None:
        self.identity = Identity(group_id, -1, "", instance_id)
        self.assigned: list[TopicPartition] = []
        self.read: dict[TopicPartition, int] = {}  # the ends of the last reads
        self._client = client
        self._world = client.world
        self._topics = [topic.name for topic in topics]
        self._partitions = [
            TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)
        ]
        self._alive_us = 0  # time of the last request to the group

    @property
    def group_id(self) -> str:
        """The group."""
        return self.identity.group_id

    @property
    def instance_id(self) -> str | None:
        """The instance id of a static member."""
        return self.identity.group_instance_id

    def forget(self) -> None:
        """Become a new process, which is not a member yet."""
        self.identity = self.identity._replace(generation=-1, member_id="")
        self.assigned = []

    # Members

    def join(self) -> Steps:
        """Join and get an assignment. Returns NONE, or the error that ends the process."""
        raise NotImplementedError

    def keep_alive(self) -> Steps:
        """Send a heartbeat if due. Returns NONE while the member may keep its partitions."""
        raise NotImplementedError

    def leave(self) -> Steps:
        """Leave the group, ignoring the response."""
        raise NotImplementedError

    def _note(self, api: str, error: ErrorCode) -> None:
        """Count an error; an unknown member gets another id."""
        if error != ErrorCode.NONE:
            self._world.counts[f"{api}: {error.name}"] += 1
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.forget()

    def _owns(self, owned: frozenset[Partition], sent_us: int, *, is_joining: bool) -> None:
        """Record that the member owned ``owned`` at the request, and owns ``assigned`` since the response."""
        group_id, epoch, member_id, _ = self.identity
        now_us = self._world.scheduler.now_us
        has = frozenset(self.assigned)
        self._world.history.ownerships.append(
            Ownership(self._client.name, group_id, member_id, epoch, owned, has, sent_us, now_us, is_joining)
        )

    # Offsets

    def committed(self) -> Steps:
        """Fetch the start position of each assigned partition, once no transaction can change it. Returns the
        error and the positions."""
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
        """Return the member id and epoch for an OffsetFetch; the classic protocol does not send them."""
        return None, -1

    def new_commit(self, offsets: Mapping[TopicPartition, int], transaction: int = -1) -> Commit:
        """Record a commit of this member, to be sent now."""
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
    """Send a commit until it is decided. No late copies: they would reset the offset, also in Kafka."""

    def perform(broker: Any, reply: Any) -> None:
        offsets = to_commit(commit.offsets, broker)
        broker.groups.commit(identity, offsets, reply, version=9)

    answer, is_uncertain = yield from client.ask("OffsetCommit", perform, can_be_late=False)
    return judged(client, commit, answer, is_uncertain=is_uncertain)


def to_commit(offsets: Mapping[Partition, int], broker: Any) -> dict[TopicPartition, OffsetToCommit]:
    """Return offsets to commit, with the topics' present ids."""
    topics = broker.image.topics
    return {
        TopicPartition(*each): OffsetToCommit(offset, topic_id=topics[each[0]].topic_id)
        for each, offset in offsets.items()
    }


def judged(client: Client, commit: Commit, answer: Any, *, is_uncertain: bool) -> ErrorCode:
    """Record the outcome of a commit, and return its error."""
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
    """Fetch committed offsets that no open transaction may change."""
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
