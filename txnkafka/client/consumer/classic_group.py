"""``ClassicGroup``: membership by JoinGroup, SyncGroup and Heartbeat; the group's leader assigns the
partitions.

Eager assignors give up all partitions before they join, ``cooperative-sticky`` only those that move
(KIP-429). Source: ``AbstractCoordinator``, ``ConsumerCoordinator``.
"""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.cluster import GROUP, backoff
from txnkafka.client.consumer.assignors import ASSIGNORS, GroupSubscription, MemberSubscription
from txnkafka.client.consumer.member_metadata import MemberMetadata
from txnkafka.client.consumer.membership import Membership
from txnkafka.client.consumer.signal import Signal
from txnkafka.client.group_metadata import ConsumerGroupMetadata
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, error_for
from txnkafka.wire.messages.heartbeat import HeartbeatRequest
from txnkafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from txnkafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from txnkafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from txnkafka.wire.records.consumer_protocol import PROTOCOL_TYPE

if TYPE_CHECKING:
    from txnkafka.client.promise import Task
    from txnkafka.model import TopicPartition
    from txnkafka.wire.messages.join_group import JoinGroupResponse

LOG = logging.getLogger("txnkafka.client")
_NO_GENERATION: Final = -1
_JOIN_SLACK_MS: Final = 5_000  # as in Java: the broker answers JoinGroup after the rebalance timeout
_REMOVED: Final = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}
_AGAIN: Final = {ErrorCode.REBALANCE_IN_PROGRESS, *_REMOVED}


class _State(enum.Enum):
    OUTSIDE = enum.auto()
    JOINING = enum.auto()
    STABLE = enum.auto()


class ClassicGroup(Membership):
    """``must_join``: something has changed, and the next poll begins to join again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.generation_id = _NO_GENERATION
        self.member_id = ""
        self._state = _State.OUTSIDE
        self._must_join = True
        self._has_lost = False  # its partitions, with its place in the group
        self._woken = Signal()
        self._joined_changes = -1  # of the subscription
        self._counted: dict[str, int] | None = None  # partitions by topic, as the leader assigned them
        self._metadata = MemberMetadata(self.config.assignors, self.config.client_rack)

    @property
    def is_member(self) -> bool:
        """Return whether the member has a generation."""
        return self.generation_id != _NO_GENERATION

    def identity(self) -> ConsumerGroupMetadata:
        """Return group, generation and member id."""
        instance = self.config.group_instance_id or None
        return ConsumerGroupMetadata(self.config.group_id, self.generation_id, self.member_id, instance)

    def epoch_identity(self) -> None:
        """Return None: classic members have no epoch."""
        return

    def on_lost(self, code: ErrorCode) -> None:
        """Join again, without the partitions; and as a new member, if the group does not know this one."""
        self.generation_id = _NO_GENERATION
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._state = _State.OUTSIDE
        self._has_lost = True
        self._join_again()

    def check(self) -> None:
        """Join again if the topics have changed, or, as the leader, their partitions."""
        if self._state is _State.STABLE:
            counted = self._counted
            is_new = counted is not None and counted != self._partition_counts(counted)
            if is_new or self._joined_changes != self.subscription.changes:
                self.holds_records = True  # until it has given up partitions
                self._join_again()

    async def leave(self) -> None:
        """Leave the group; a static member stays until its session times out (KIP-345)."""
        member_id, is_static = self.member_id, bool(self.config.group_instance_id)
        self.generation_id, self.member_id, self._state = _NO_GENERATION, "", _State.OUTSIDE
        if not member_id or is_static:
            return
        try:
            connection = await self.cluster.coordinator(GROUP, self.config.group_id)
            version = connection.versions.pick("LeaveGroup")
            members = (
                (MemberIdentity(member_id=member_id, reason="the consumer was closed"),)
                if version >= 3
                else ()
            )
            message = LeaveGroupRequest(
                group_id=self.config.group_id, members=members, member_id="" if version >= 3 else member_id
            )
            await self.cluster.request(connection, "LeaveGroup", version, message)
        except KafkaError as error:
            LOG.info("group %s: LeaveGroup failed: %s", self.config.group_id, error)

    async def _poll_expired(self) -> None:
        await self.leave()
        self._has_lost = True
        self._join_again()

    def _start(self) -> list[Task[Any]]:
        spawn = self.reactor.spawn
        return [spawn(self.run(self._stay_joined())), spawn(self.run(self._beat()))]

    def _join_again(self) -> None:
        self._must_join = True
        self._woken.notify()

    # Joining

    async def _stay_joined(self) -> None:
        while True:
            while not self._must_join:
                await self._woken.next
            await self.poll_point()
            await self._prepare()
            self._must_join = False
            self.release()
            assigned = await self._join()
            if assigned is not None:
                await self._take(assigned)

    async def _prepare(self) -> None:
        """Give up partitions: all, with an eager assignor, or because they are lost."""
        if self._has_lost:
            await self.revoke(list(self.subscription.assigned), "lost")
            self._has_lost = False
            return
        await self.commit_before()
        if self._metadata.is_cooperative:
            topics = self.subscription.topics
            await self.revoke([each for each in self.subscription.assigned if each.topic not in topics])
        else:
            await self.revoke(list(self.subscription.assigned))

    async def _join(self) -> list[TopicPartition] | None:
        """Join, and return the assignment; None if the group rebalances again. Errors that pass are
        repeated."""
        failures = 0
        while True:
            self._state = _State.JOINING
            try:
                joined = await self._join_once()
                return None if joined is None else await self._sync(joined)
            except KafkaError as error:
                self._state = _State.OUTSIDE
                if error.code in _AGAIN:
                    self._rejected(ErrorCode.of(error.code))
                    return None
                if not error.retriable:
                    self._must_join = True
                    raise
                self.forget_coordinator(error)
                failures += 1
            config = self.config
            await self.reactor.sleep(backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, failures))

    def _rejected(self, code: ErrorCode) -> None:
        """Join again after an answer that ends this attempt."""
        if code in _REMOVED:
            self.generation_id = _NO_GENERATION
            self._has_lost = bool(self.subscription.assigned)
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._must_join = True

    async def _join_once(self) -> JoinGroupResponse | None:
        config = self.config
        self._joined_changes = self.subscription.changes
        connection = await self.cluster.coordinator(GROUP, config.group_id)
        version = connection.versions.pick("JoinGroup", at_least=5 if config.group_instance_id else 0)
        owned, topics = list(self.subscription.assigned), self.subscription.topics
        protocols = tuple(
            JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in self._metadata.subscriptions(topics, owned, self.generation_id)
        )
        message = JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=config.group_instance_id or None,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
        )
        limit = max(config.request_timeout_ms, config.max_poll_interval_ms + _JOIN_SLACK_MS)
        response = await self.cluster.request(connection, "JoinGroup", version, message, limit)
        code = ErrorCode.of(response.error_code)
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return await self._join_once()
        if code != ErrorCode.NONE:
            raise error_for(code, f"group {config.group_id!r}: JoinGroup: {code.name}")
        self.generation_id, self.member_id = response.generation_id, response.member_id
        return response  # type: ignore[no-any-return]

    async def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        config, assignments = self.config, ()
        self._counted = None
        if joined.leader == joined.member_id:
            by_member = await self._assign_group(joined)
            assignments = tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                for member_id, data in by_member.items()
            )  # type: ignore[assignment]
        connection = await self.cluster.coordinator(GROUP, config.group_id)
        version = connection.versions.pick("SyncGroup", at_least=3 if config.group_instance_id else 0)
        message = SyncGroupRequest(
            group_id=config.group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=config.group_instance_id or None,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        limit = max(config.request_timeout_ms, config.max_poll_interval_ms + _JOIN_SLACK_MS)
        response = await self.cluster.request(connection, "SyncGroup", version, message, limit)
        code = ErrorCode.of(response.error_code)
        if code != ErrorCode.NONE:
            raise error_for(code, f"group {config.group_id!r}: SyncGroup: {code.name}")
        self._state = _State.STABLE
        return self._metadata.assigned(joined.protocol_name or "", response.assignment, joined.generation_id)

    async def _assign_group(self, joined: JoinGroupResponse) -> dict[str, bytes]:
        """Assign the partitions of all members' topics, as the leader."""
        members: dict[str, MemberSubscription] = {
            each.member_id: self._metadata.read(each.metadata, each.group_instance_id)
            for each in joined.members
        }
        topics = {topic for member in members.values() for topic in member.topics}
        self.cluster.want(topics)
        if not topics <= self.cluster.topics.keys():
            await self.cluster.refresh()
        counts = self._partition_counts(topics)
        if joined.skip_assignment:  # a static leader that came back (KIP-814)
            self._counted = counts
            return {}
        group = GroupSubscription({name: count for name, count in counts.items() if count}, members)
        assigned = ASSIGNORS[joined.protocol_name or ""](group)
        self._counted = counts
        return {
            member_id: self._metadata.assignment(partitions) for member_id, partitions in assigned.items()
        }

    def _partition_counts(self, topics: Any) -> dict[str, int]:
        known = self.cluster.topics
        return {name: len(known[name].partitions) if name in known else 0 for name in sorted(topics)}

    # The new assignment

    async def _take(self, assigned: list[TopicPartition]) -> None:
        """Take the assignment. Partitions that a cooperative assignor takes away are given up, and then the
        member joins again, so that others can get them."""
        if self._metadata.is_cooperative:
            gone = [each for each in self.subscription.assigned if each not in set(assigned)]
            if gone:
                await self.poll_point()
                await self.commit_before()
                await self.revoke(gone)
                self._must_join = True
                self.release()
        await self.assign(assigned)
        self._changed.notify()

    # Heartbeats

    async def _beat(self) -> None:
        while True:
            await self.reactor.sleep(self.config.heartbeat_interval_ms)
            if self._state is _State.STABLE:
                try:
                    await self._heartbeat()
                except KafkaError as error:
                    self.forget_coordinator(error)
                    if not error.retriable:
                        self._must_join = True
                        raise

    async def _heartbeat(self) -> None:
        config, generation_id = self.config, self.generation_id
        connection = await self.cluster.coordinator(GROUP, config.group_id)
        version = connection.versions.pick("Heartbeat", at_least=3 if config.group_instance_id else 0)
        message = HeartbeatRequest(
            group_id=config.group_id,
            generation_id=generation_id,
            member_id=self.member_id,
            group_instance_id=config.group_instance_id or None,
        )
        limit = min(config.request_timeout_ms, config.session_timeout_ms)
        response = await self.cluster.request(connection, "Heartbeat", version, message, limit)
        code = ErrorCode.of(response.error_code)
        if code == ErrorCode.NONE or self._state is not _State.STABLE or generation_id != self.generation_id:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._join_again()
        elif code in _REMOVED:
            LOG.info("group %s: %s: the consumer joins again", config.group_id, code.name)
            self.on_lost(code)
        else:
            raise error_for(code, f"group {config.group_id!r}: Heartbeat: {code.name}")
