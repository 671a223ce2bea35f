"""``ConsumerMembership``: membership of a group with the consumer protocol (KIP-848).

The response to a heartbeat has the target assignment. The member first revokes other partitions, then adds
the new ones, and acknowledges with its owned partitions. As in Kafka, a late copy of such a heartbeat would
revoke partitions assigned since, so only heartbeats without owned partitions arrive late.

Source: ``ConsumerMembershipManager``, ``ConsumerHeartbeatRequestManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.client import BACKOFF_US, MOST_ATTEMPTS, RETRIABLE
from txnkafka.testing.simulation.history import LostMember
from txnkafka.testing.simulation.membership import LEFT_OUT, MOST_JOINS, Membership
from txnkafka.testing.simulation.network import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.testing.simulation.client import Client, Steps
    from txnkafka.testing.simulation.history import Topic

_API: Final = "ConsumerGroupHeartbeat"
_JOINING, _LEAVING, _AWAY = 0, -1, -2  # epochs
_NO_MEMBER: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
)
_MOST_BEATS: Final = 400


class ConsumerMembership(Membership):
    """The generation of ``identity`` is the member epoch, -1 for a non-member."""

    kind = "stale consumer"

    def __init__(
        self, client: Client, group_id: str, topics: Sequence[Topic], instance_id: str | None
    ) -> None:
        super().__init__(client, group_id, topics, instance_id)
        random = client.random
        self._assignor = random.choice((None, "uniform", "range"))
        self._regex = "|".join(self._topics) if random.random() < 0.3 else None
        self._target: list[TopicPartition] | None = None  # the assignment not adopted yet
        self._heard: int | None = None  # time of the last heartbeat, in ms of a monotonic clock
        self._processes = 0

    def forget(self) -> None:
        """Become a new process, which is not a member yet."""
        super().forget()
        self._target = self._heard = None

    # Members

    def join(self) -> Steps:
        """Join, or adopt the target assignment. Returns NONE, or the error that ends the process."""
        for _ in range(MOST_JOINS):
            is_joining = self.identity.generation <= _JOINING
            error = yield from self._enter() if is_joining else self._reconcile()
            if error == ErrorCode.NONE and self._target is None:
                return error
            if error == ErrorCode.UNRELEASED_INSTANCE_ID:
                self._world.counts["instance not released"] += 1
            if error != ErrorCode.NONE and error not in LEFT_OUT:
                return error
            if error != ErrorCode.NONE:
                yield self._client.random.randrange(BACKOFF_US // 2, BACKOFF_US)
        self._world.gave_up += 1
        return ErrorCode.REQUEST_TIMED_OUT

    def _enter(self) -> Steps:
        if not self.identity.member_id:
            self._processes += 1
            name = f"{self._client.name}+{self._processes}-{self._client.random.getrandbits(32):08x}"
            self.identity = self.identity._replace(member_id=name)
        self.assigned, self._target = [], None
        self.identity = self.identity._replace(generation=_JOINING)
        error = yield from self._beat(is_full=True)
        if error == ErrorCode.NONE:
            counts, is_static = self._world.counts, self.identity.group_instance_id is not None
            counts["consumer joined"] += 1
            counts["instance joined"] += is_static
            counts["static consumer came back"] += self.identity.group_instance_id in self._world.away
            self._world.away.discard(self.identity.group_instance_id)
        return error

    def _reconcile(self) -> Steps:
        """Revoke, adopt and acknowledge; without a target, send a plain heartbeat."""
        target = self._target
        if target is None:
            return (yield from self._beat(is_full=True))
        if not set(self.assigned) <= set(target):
            error = yield from self._linger()
            if error != ErrorCode.NONE or self._target != target:
                return error
            self._world.counts["partitions given up"] += 1
        self._world.counts["partitions taken"] += not set(target) <= set(self.assigned)
        self.assigned, self._target = target, None
        return (yield from self._beat(is_full=True))

    def _linger(self) -> Steps:
        """Sometimes revoke partitions slowly, reporting them as owned in the meantime."""
        if self._world.is_calm or self._client.random.random() > 0.8:
            return ErrorCode.NONE
        self._world.counts["consumer kept its partitions"] += 1
        is_for_ever = self._client.random.random() < 0.7
        for _ in range(_MOST_BEATS if is_for_ever else 2):
            yield self._interval_us()
            error = yield from self._beat(is_full=True)
            if error != ErrorCode.NONE:
                self._world.counts["consumer expelled"] += error in _NO_MEMBER
                return error
        return ErrorCode.NONE

    def keep_alive(self) -> Steps:
        """Send a heartbeat if due. Returns NONE while the member may keep its partitions."""
        if self._world.scheduler.now_us - self._alive_us < self._interval_us():
            return ErrorCode.NONE
        error = yield from self._beat(is_full=self._client.random.random() < 0.2)
        if error == ErrorCode.NONE and self._target is not None:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def _interval_us(self) -> int:
        return self._world.swarm.session_timeout_ms * 250

    def _beat(self, *, is_full: bool) -> Steps:
        """Send a heartbeat; ``is_full``: with all fields. Returns the error."""
        owned, sent_us = frozenset(self.assigned), self._world.scheduler.now_us
        sent = self._running_ms()
        is_joining = self.identity.generation == _JOINING
        gave_up, answer = yield from self._answered(is_full=is_full)
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        error, epoch, assignment = answer.error, answer.epoch, answer.assignment
        if is_joining and error == ErrorCode.UNKNOWN_SERVER_ERROR:  # same response as Kafka
            self._world.counts["classic group without a generation"] += 1
            error = ErrorCode.GROUP_ID_NOT_FOUND
        if error != ErrorCode.NONE:
            self._world.counts[f"{_API}: {error.name}"] += 1
        if error == ErrorCode.UNKNOWN_MEMBER_ID and not gave_up:
            self._note_lost()
        if error in _NO_MEMBER:
            self.assigned, self._target = [], None
            self.identity = self.identity._replace(generation=-1)
        if error != ErrorCode.NONE:
            return error
        self._alive_us = self._world.scheduler.now_us
        self.identity = self.identity._replace(generation=epoch)
        if assignment is not None:
            self._target = None if set(assignment) == set(self.assigned) else sorted(assignment)
        has = self.assigned
        if self._target is not None:
            self.assigned = self._target
        self._owns(owned, sent_us, is_joining=is_joining)
        self._heard = sent if owned <= set(self.assigned) else None  # it need not act before a timeout
        self.assigned = has
        return error

    def _running_ms(self) -> int:
        return self._world.scheduler.now_us // 1000

    def _note_lost(self) -> None:
        """Record that the group does not know the member. The response to a copied heartbeat may have revoked
        partitions."""
        swarm = self._world.swarm
        has_copies = swarm.hold > 0 or swarm.duplicate > 0
        if self._heard is not None and not has_copies:
            group_id, _, member_id, _ = self.identity
            silent_ms = self._running_ms() - self._heard
            self._world.history.lost_members.append(
                LostMember(self._client.name, group_id, member_id, silent_ms)
            )

    def _answered(self, *, is_full: bool) -> Steps:
        """Return True if an attempt timed out, and the response to a heartbeat. After a heartbeat without a
        response, the next one has all fields."""
        for attempt in range(MOST_ATTEMPTS):
            is_full = is_full or attempt > 0
            request = Request(_API, self._heartbeat(is_full=is_full), can_be_late=not is_full)
            (answer,) = yield [request]
            if answer is not None and answer.error not in RETRIABLE:
                return attempt > 0, answer
            yield self._client.random.randrange(BACKOFF_US // 2, BACKOFF_US)
        self._world.gave_up += 1
        return True, None

    def _heartbeat(self, *, is_full: bool) -> Any:
        group_id, epoch, member_id, instance_id = self.identity
        request = ConsumerHeartbeat(group_id, member_id, epoch, instance_id, client_id=self._client.name)
        owned = list(self.assigned)
        if is_full:
            request = request._replace(
                rebalance_timeout_ms=self._world.swarm.rebalance_timeout_ms, assignor=self._assignor,
                topics=() if self._regex else tuple(self._topics), regex=self._regex or "",
            )  # fmt: skip

        def perform(broker: Any, reply: Any) -> None:
            full = request._replace(owned=_by_id(owned, broker)) if is_full else request

            def answered(answer: Any) -> None:
                given = answer.assignment
                reply(answer if given is None else answer._replace(assignment=_by_name(given, broker)))

            broker.groups.consumer_heartbeat(full, answered)

        return perform

    def leave(self) -> Steps:
        """Leave the group, ignoring the response; some static members return."""
        group_id, epoch, member_id, instance_id = self.identity
        self.assigned, self._target = [], None
        if epoch <= _JOINING:
            return
        is_away = instance_id is not None and self._client.random.random() < 0.6
        request = ConsumerHeartbeat(group_id, member_id, _AWAY if is_away else _LEAVING, instance_id)

        def perform(broker: Any, reply: Any) -> None:
            broker.groups.consumer_heartbeat(request, reply)

        answer, _ = yield from self._client.ask(_API, perform)
        is_done = answer is not None and answer.error == ErrorCode.NONE
        self._world.counts["static consumer left for a while" if is_away else "consumer left"] += is_done
        if is_away and is_done:
            self._world.away.add(instance_id)
        self.forget()

    # Offsets

    def _as_member(self) -> tuple[str | None, int]:
        return self.identity.member_id, self.identity.generation


def _by_id(partitions: Sequence[TopicPartition], broker: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(broker.image.topics[topic].topic_id, []).append(number)
    return found


def _by_name(assignment: Any, broker: Any) -> list[TopicPartition]:
    names = broker.image.topic_names
    return [
        TopicPartition(names[topic_id], number)
        for topic_id, numbers in assignment.items()
        for number in numbers
    ]
