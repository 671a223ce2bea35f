"""``GroupCoordinator``: the owner of the consumer groups of a node. Synchronous, no clock, no IO.

A request changes the groups at once, and is answered when its appends are durable. A request that reads
offsets is answered when all earlier appends are durable, so a crash reverts nothing that a client has seen.
If the log of a partition fails, all its groups answer NOT_COORDINATOR.

Source: GroupCoordinatorService, GroupMetadataManager of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final

from txnkafka.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from txnkafka.coordinator.group.classic.classic_groups import ClassicGroups
from txnkafka.coordinator.group.classic.classic_members import ClassicMembers
from txnkafka.coordinator.group.classic.classic_rebalance import ClassicRebalance, GroupConfig
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_groups import ConsumerGroups
from txnkafka.coordinator.group.consumer.heartbeat_checks import check_heartbeat
from txnkafka.coordinator.group.described_groups import (
    DescribedConsumerGroup,
    describe_classic,
    describe_consumer,
    listed,
)
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.coordinator.group.group_host import GroupHost
from txnkafka.coordinator.group.group_log import GroupLog
from txnkafka.coordinator.group.group_partition import AnyGroup, GroupPartition, group_tombstones
from txnkafka.coordinator.group.group_requests import (
    ConsumerHeartbeat,
    DescribedGroup,
    HeartbeatAnswer,
    Identity,
    Joined,
    JoinGroup,
    Left,
    ListedGroup,
    Offsets,
    Synced,
    SyncGroup,
)
from txnkafka.coordinator.group.offsets.offset_manager import Errors, Fetched, OffsetManager
from txnkafka.coordinator.log_event import LogEvent
from txnkafka.coordinator.partitions import DEFAULT_PARTITIONS
from txnkafka.coordinator.runtime import Expiry, TopicLog, append_error
from txnkafka.coordinator.ticks import Ticks
from txnkafka.coordinator.timers import NEVER, Timers
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerIdAndEpoch, TopicPartition

E = ErrorCode
GROUPS_AT_ONCE: Final = 100  # checked for expired offsets between two requests


class GroupCoordinator:
    """``partitions`` has the loaded partitions of ``__consumer_offsets``. Each method is one
    request; ``reply`` is called once, now or later."""

    def __init__(
        self,
        host: GroupHost,
        log: TopicLog,
        *,
        config: GroupConfig | None = None,
        partition_count: int = DEFAULT_PARTITIONS,
        ticks: Ticks | None = None,
    ) -> None:
        self.partitions = GroupLog(log, partition_count)
        self._ticks = ticks or Ticks()
        self._timers = Timers()
        append_group = self.partitions.append_group
        self._rebalance = ClassicRebalance(self._timers, config or GroupConfig(), append_group)
        self._classic = ClassicGroups(self._rebalance, host.new_id)
        self._consumer = ConsumerGroups(self._rebalance, self.partitions, host)
        self._classic_members = ClassicMembers(self._consumer)
        self._offsets = OffsetManager(self.partitions, self._rebalance)
        self._host = host
        self._expiry: Expiry | None = None  # until the time is known
        self._deadline = NEVER  # in ticks, as ``advance`` has returned it

    @property
    def config(self) -> GroupConfig:
        """The current settings."""
        return self._rebalance.config

    def configure(self, config: GroupConfig) -> None:
        """Use changed settings."""
        self._rebalance.config = config

    # Partitions

    def load(self, partition: int, events: Iterable[LogEvent], now_ms: int) -> None:
        """Load a partition: replay its log."""
        self.at(now_ms)
        loaded = GroupPartition()
        self.partitions.load(partition, loaded, events)
        loaded.add_simple_groups(now_ms)
        for group in loaded.groups.values():
            if isinstance(group, ConsumerGroup):
                session_ms = self._consumer.config_of(group.group_id).session_timeout_ms
                self._consumer.timers.load(group, session_ms)
            else:
                self._rebalance.load(group)
                is_too_large = len(group.members) > self.config.max_size  # which may have been lowered
                # no record has the rebalance after a conversion: partitions of left members have no owner
                if is_too_large or group.group_id in loaded.converted:
                    self._rebalance.prepare(group)

    def resign(self, partition: int) -> None:
        """Forget a partition; requests that wait get NOT_COORDINATOR."""
        left = self.partitions.loaded.pop(partition, None)
        for group in left.groups.values() if left else ():
            self._forget(group)

    def _forget(self, group: AnyGroup) -> None:
        if isinstance(group, ConsumerGroup):
            self._consumer.timers.forget(group)
        else:
            self._rebalance.forget(group)

    def delete_partitions(self, topic: str, numbers: Iterable[int], now_ms: int) -> None:
        """Delete the offsets of a deleted topic's partitions."""
        self.at(now_ms)
        self._offsets.delete_partitions(topic, numbers)

    def delete_removed(self, removed: Mapping[str, str], there: Container[str], now_ms: int) -> None:
        """Delete the offsets of topics that were removed before a crash; see ``OffsetManager``."""
        self.at(now_ms)
        self._offsets.delete_removed(removed, there)

    def end_transaction(self, partition: int, offset: int, producer_id: int, committed: bool) -> None:
        """Apply an end marker that was appended to a partition."""
        here = self.partitions.loaded.get(partition)
        if here is not None:
            here.offsets.replay(LogEvent(offset, producer_id, committed, None, None))

    def at(self, now_ms: int) -> None:
        """Set the time for the calls that follow: timers, and appends that became durable."""
        self._rebalance.now_ms, self._rebalance.ticks = now_ms, self._ticks.at(now_ms)

    # Members

    def join(self, request: JoinGroup, reply: Callable[[Joined], None], now_ms: int) -> None:
        """Add a member to a group, or let a member rejoin; create the group for its first member."""
        group_id, member_id = request.identity.group_id, request.identity.member_id
        here = self.partitions.of(group_id)
        least, most = self.config.min_session_timeout_ms, self.config.max_session_timeout_ms
        if isinstance(here, ErrorCode):
            reply(Joined(here, member_id))
            return
        if not least <= request.session_timeout_ms <= most:
            reply(Joined(E.INVALID_SESSION_TIMEOUT, member_id))
            return
        self.at(now_ms)
        group = here.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and group.members:
            self._classic_members.join(here, group, request, reply)
            return
        if not isinstance(group, ClassicGroup) and member_id:
            reply(Joined(E.UNKNOWN_MEMBER_ID, member_id))
            return
        if group is None:
            group = here.groups[group_id] = ClassicGroup(group_id, now_ms)
        elif isinstance(group, ConsumerGroup):
            replaced = self._replaced(here, group)
            if replaced is None:
                reply(Joined(E.NOT_COORDINATOR, member_id))
                return
            group = replaced
        self._classic.join(group, request, reply)

    def _replaced(self, here: GroupPartition, group: ConsumerGroup) -> ClassicGroup | None:
        """Return the empty classic group that replaces an empty consumer group; None if not written."""
        classic = ClassicGroup(group.group_id, self._rebalance.now_ms)
        tombstones = group_tombstones(group)
        is_there = self._consumer.downgrade(
            here, group, classic, tombstones, lambda _: None, is_rebalanced=False
        )
        return classic if is_there else None

    def consumer_heartbeat(
        self, request: ConsumerHeartbeat, reply: Callable[[HeartbeatAnswer], None], now_ms: int
    ) -> None:
        """Handle a heartbeat of a consumer group: a member joins, is alive, or leaves (KIP-848)."""
        try:
            check_heartbeat(request, self.config.consumer.assignors)
        except GroupError as error:
            reply(HeartbeatAnswer(error.code, str(error)))
            return
        here = self.partitions.of(request.group_id)
        if isinstance(here, ErrorCode):
            reply(HeartbeatAnswer(here))
            return
        self.at(now_ms)
        self._consumer.heartbeat(here, request, reply)

    def sync(self, request: SyncGroup, reply: Callable[[Synced], None], now_ms: int) -> None:
        """Answer with the assignment of a member."""
        group = self._members_group(request.identity.group_id)
        if isinstance(group, ErrorCode):
            reply(Synced(group))
            return
        self.at(now_ms)
        if isinstance(group, ConsumerGroup):
            self._classic_members.sync(group, request, reply)
        else:
            self._rebalance.sync(group, request, reply)

    def heartbeat(self, identity: Identity, now_ms: int) -> ErrorCode:
        """Record that a member is alive."""
        group = self._members_group(identity.group_id)
        if isinstance(group, ErrorCode):
            return group
        self.at(now_ms)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.heartbeat(group, identity)
        return self._classic.heartbeat(group, identity)

    def leave(self, group_id: str, leaving: Sequence[Identity], reply: Left, now_ms: int) -> None:
        """Remove members; ``reply`` gets the errors of the request and of each member."""
        group = self._members_group(group_id)
        if isinstance(group, ErrorCode):
            is_unknown = group == E.UNKNOWN_MEMBER_ID
            reply(E.NONE if is_unknown else group, [group] * len(leaving))
            return
        self.at(now_ms)
        if isinstance(group, ConsumerGroup):
            here = self.partitions.loaded[self.partitions.number_of(group_id)]
            self._classic_members.leave(here, group, leaving, reply)
        else:
            reply(E.NONE, self._classic.leave(group, leaving))

    def _members_group(self, group_id: str) -> AnyGroup | ErrorCode:
        """Return a group; UNKNOWN_MEMBER_ID if it does not exist."""
        group = self.partitions.find(group_id)
        return E.UNKNOWN_MEMBER_ID if group == E.GROUP_ID_NOT_FOUND else group

    # Offsets

    def commit(
        self,
        identity: Identity,
        offsets: Offsets,
        reply: Callable[[Errors], None],
        now_ms: int,
        *,
        version: int = 9,
        producer: ProducerIdAndEpoch | None = None,
    ) -> None:
        """Commit offsets; see ``OffsetManager.commit``."""
        self.at(now_ms)
        self._offsets.commit(identity, offsets, reply, version=version, producer=producer)

    def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        reply: Callable[[ErrorCode, Fetched], None],
        *,
        require_stable: bool,
        member: tuple[str | None, int] = (None, -1),
    ) -> None:
        """Answer with the committed offsets of a group; see ``OffsetManager.fetch``."""
        self._offsets.fetch(group_id, partitions, reply, require_stable=require_stable, member=member)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        reply: Callable[[ErrorCode, Errors], None],
    ) -> None:
        """Delete committed offsets; see ``OffsetManager.delete``."""
        self._offsets.delete(group_id, partitions, reply)

    # Groups

    def delete(self, group_id: str, reply: Callable[[ErrorCode], None]) -> None:
        """Delete a group without members, and its offsets. A missing group may have been deleted just now, so
        GROUP_ID_NOT_FOUND waits until that is durable, as in Kafka."""
        group = self.partitions.find(group_id, may_be_empty=True)
        if group == E.GROUP_ID_NOT_FOUND:
            self.partitions.when_durable(group_id, lambda error: reply(append_error(error) or group))
        elif isinstance(group, ErrorCode):
            reply(group)
        elif not _is_empty(group):
            reply(E.NON_EMPTY_GROUP)
        else:
            self._delete(group, lambda error: reply(append_error(error)))

    def _delete(self, group: AnyGroup, call: Callable[[ErrorCode], None]) -> None:
        number = self.partitions.number_of(group.group_id)
        here = self.partitions.loaded[number]
        keys = [*here.offsets.keys(group.group_id), *(key for key, _ in group_tombstones(group))]
        if self._offsets.delete_keys(number, keys, call):
            self._forget(group)
            del here.groups[group.group_id]

    def describe(self, group_id: str) -> DescribedGroup:
        """Return the description of a group for DescribeGroups."""
        return describe_classic(self.partitions.find(group_id, may_be_empty=True), group_id)

    def describe_consumer(
        self, group_ids: Sequence[str], reply: Callable[[list[DescribedConsumerGroup]], None]
    ) -> None:
        """Answer with the descriptions for ConsumerGroupDescribe when the described state is durable."""
        consumer = self.config.consumer
        found = [
            describe_consumer(self.partitions.find(group_id), group_id, self._host.image, consumer)
            for group_id in group_ids
        ]
        left = len(found)

        def durable(_: ErrorCode) -> None:
            nonlocal left
            left -= 1
            if not left:
                reply(found)

        for each in found:
            if each.error == E.NONE:
                self.partitions.when_durable(each.group_id, durable)
            else:
                durable(E.NONE)
        if not found:
            reply(found)

    def listed(self) -> list[ListedGroup]:
        """Return all groups."""
        return [listed(group) for here in self.partitions.loaded.values() for group in here.groups.values()]

    # Time

    def advance(self, now_ms: int) -> int:
        """Run everything due; return the ticks of the next call at the latest."""
        self.at(now_ms)
        ticks = self._rebalance.ticks
        expiry = self._expiry or self._begin_expiry(ticks)
        deadline = min(self._timers.next(), expiry.deadline(ticks))
        if deadline <= ticks:
            self._timers.run(ticks)
            groups = (group_id for here in self.partitions.loaded.values() for group_id in here.groups)
            for group_id in expiry.due(groups, ticks):
                self._expire(group_id)
            deadline = min(self._timers.next(), expiry.deadline(ticks))
        self._deadline = deadline
        return deadline

    @property
    def is_earlier(self) -> bool:
        """Return whether a timer is due before the ticks that ``advance`` has returned."""
        return self._timers.next() < self._deadline

    def _begin_expiry(self, ticks: int) -> Expiry:
        """Begin expiry one interval after a start, when members had time to rejoin, as in Kafka."""
        interval = self.config.retention_check_interval_ms
        self._expiry = Expiry(interval, GROUPS_AT_ONCE, first_ms=ticks + interval)
        return self._expiry

    def _expire(self, group_id: str) -> None:
        """Delete expired offsets, and the group if it has no members and no offsets."""
        here = self.partitions.of(group_id, may_be_empty=True)
        group = self.partitions.find(group_id, may_be_empty=True)
        if isinstance(here, ErrorCode) or isinstance(group, ErrorCode):
            return
        is_without = self._offsets.expire(here, group)
        is_awaited = isinstance(group, ClassicGroup) and bool(group.pending)  # by a member on its way
        if is_without and _is_empty(group) and not is_awaited:
            self._delete(group, lambda _: None)


def _is_empty(group: AnyGroup) -> bool:
    """Return whether a group may be deleted: it has no members. A member that has only an id starts over."""
    return not group.members if isinstance(group, ConsumerGroup) else group.state is GroupState.EMPTY
