"""``ConsumerGroups``: heartbeats, joins and leaves of members of the consumer protocol.

A request is turned into records. The group changes when they are appended, as it does when they are loaded;
the answer is sent when they are durable.

Source: GroupMetadataManager.consumerGroupHeartbeat, consumerGroupLeave and consumerGroupFenceMembers
(KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from txnkafka.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from txnkafka.coordinator.group.classic.classic_rebalance import ClassicRebalance
from txnkafka.coordinator.group.consumer import consumer_records, heartbeat_checks
from txnkafka.coordinator.group.consumer.consumer_config import ConsumerGroupConfig
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
)
from txnkafka.coordinator.group.consumer.consumer_records import Record
from txnkafka.coordinator.group.consumer.consumer_regexes import ConsumerRegexes, RegexChange
from txnkafka.coordinator.group.consumer.member_timers import MemberTimers
from txnkafka.coordinator.group.consumer.member_update import MemberUpdate, hash_of
from txnkafka.coordinator.group.group_conversion import classic_of, consumer_of
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.coordinator.group.group_host import GroupHost
from txnkafka.coordinator.group.group_log import GroupLog
from txnkafka.coordinator.group.group_partition import AnyGroup, GroupPartition, record_of
from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat, HeartbeatAnswer
from txnkafka.coordinator.registry.cluster_image import GROUP_RESOURCE
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records.group_log import encode_group_key, encode_group_value
from txnkafka.wire.schema import SchemaError

E = ErrorCode
Call = Callable[[ErrorCode], None]


@dataclass
class ConsumerGroups:
    """Handler of consumer groups. Time and timers come from ``rebalance``, which handles the classic
    groups."""

    rebalance: ClassicRebalance
    log: GroupLog
    host: GroupHost
    timers: MemberTimers = field(init=False)
    regexes: ConsumerRegexes = field(init=False)

    def __post_init__(self) -> None:
        self.timers = MemberTimers(self.rebalance, self._overdue)
        self.regexes = ConsumerRegexes(self.rebalance, self.log, self.host)

    @property
    def config(self) -> ConsumerGroupConfig:
        """The settings of groups without their own."""
        return self.rebalance.config.consumer

    def config_of(self, group_id: str) -> ConsumerGroupConfig:
        """Return the settings of a group."""
        return self.config.of_group(self.host.image.configs.get((GROUP_RESOURCE, group_id), {}))

    # ConsumerGroupHeartbeat

    def heartbeat(
        self, here: GroupPartition, request: ConsumerHeartbeat, reply: Callable[[HeartbeatAnswer], None]
    ) -> None:
        """Handle a heartbeat: a member joins, stays or leaves."""
        try:
            if request.epoch < JOINING_EPOCH:
                self._leave(here, request, reply)
            else:
                self._heartbeat(here, request, reply)
        except GroupError as error:
            reply(HeartbeatAnswer(error.code, str(error)))
        except SchemaError as error:  # a name is too long for the record
            reply(HeartbeatAnswer(E.UNKNOWN_SERVER_ERROR, str(error)))

    def _heartbeat(
        self, here: GroupPartition, request: ConsumerHeartbeat, reply: Callable[[HeartbeatAnswer], None]
    ) -> None:
        records: list[Record] = []
        before = here.groups.get(request.group_id)
        group = self._group(before, request, records)
        heartbeat_checks.check_room(group, request.member_id, self.config.max_size)
        member_id = request.member_id or self.host.new_id()
        old = self._member(group, member_id, request, records)
        update = self.update(group, old, _told(old, request), records)
        is_named = update.write_member()
        regex = self.regexes.update(update)
        is_resolved = regex is RegexChange.RESOLVED
        update.write_epoch(is_needed=is_named or is_resolved or update.changes_assignor())
        is_new = is_named or regex is not RegexChange.NONE
        target_epoch, target = update.write_targets()
        has_stepped = update.reconcile(target_epoch, target, request.owned, is_subscription_new=is_new)
        answer = self._answer(request, old, update.new)
        if self.append(group.group_id, records, lambda error: reply(_durable(answer, error))):
            if isinstance(before, ClassicGroup):
                self._upgraded(before, here.groups[group.group_id])
            self.settle(here, update, has_stepped=has_stepped)
            session_ms = self.config_of(group.group_id).session_timeout_ms
            self.timers.expect(group.group_id, member_id, session_ms)

    def update(
        self, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, records: list[Record]
    ) -> MemberUpdate:
        """Return the changes of a group that a request of a member causes."""
        config, now_ms = self.config_of(group.group_id), self.rebalance.now_ms
        return MemberUpdate(group, old, new, self.host.image, config, now_ms, records)

    def _answer(
        self, request: ConsumerHeartbeat, old: ConsumerMember, new: ConsumerMember
    ) -> HeartbeatAnswer:
        """Return the answer. It has the partitions after they have changed, and for a member whose request
        has all fields."""
        is_full = request.rebalance_timeout_ms != -1 and request.owned is not None
        is_full = is_full and (request.topics is not None or request.regex is not None)
        is_told = request.epoch == JOINING_EPOCH or is_full or old.assigned != new.assigned
        assigned = {topic_id: tuple(sorted(new.assigned[topic_id])) for topic_id in sorted(new.assigned)}
        interval_ms = self.config_of(request.group_id).heartbeat_interval_ms
        return HeartbeatAnswer(
            E.NONE, None, new.member_id, new.epoch, interval_ms, assigned if is_told else None
        )

    def append(self, group_id: str, records: Sequence[Record], call: Call) -> bool:
        """Append and apply records; return whether they were appended."""
        return self.log.append(group_id, records, call)

    def settle(self, here: GroupPartition, update: MemberUpdate, *, has_stepped: bool) -> None:
        """Update the state outside the log after the records of an update were applied."""
        group = here.groups[update.group.group_id]
        if isinstance(group, ConsumerGroup) and update.is_checked:
            group.checked = update.image.topic_changes
        if has_stepped:
            self.timers.expect_revocation(group.group_id, update.new)

    # Group and member of a heartbeat

    def _group(
        self, group: AnyGroup | None, request: ConsumerHeartbeat, records: list[Record]
    ) -> ConsumerGroup:
        """Return the consumer group; ``records`` convert an existing classic group. Raises GroupError with
        GROUP_ID_NOT_FOUND."""
        group_id = request.group_id
        if isinstance(group, ConsumerGroup):
            return group
        if request.epoch != JOINING_EPOCH:
            text = f"Consumer group {group_id} not found."
            text = text if group is None else f"Group {group_id} is not a consumer group."
            raise GroupError(E.GROUP_ID_NOT_FOUND, text)
        if group is None:
            return ConsumerGroup(group_id)
        records.append((encode_group_key(group_id), None))
        if group.state is GroupState.EMPTY:
            return ConsumerGroup(group_id)
        found = consumer_of(group, self.host.image, self.config)
        records.extend(consumer_records.group_records(found))
        return found

    def _upgraded(self, before: ClassicGroup, group: AnyGroup) -> None:
        """Make waiting members join again after their classic group has become a consumer group."""
        self.rebalance.forget(before, E.REBALANCE_IN_PROGRESS)
        for member in group.members.values() if isinstance(group, ConsumerGroup) else ():
            if member.classic is not None:
                self.timers.expect(group.group_id, member.member_id, member.classic.session_timeout_ms)

    def _member(
        self, group: ConsumerGroup, member_id: str, request: ConsumerHeartbeat, records: list[Record]
    ) -> ConsumerMember:
        is_joining = request.epoch == JOINING_EPOCH
        if request.instance_id is None:
            if is_joining and member_id not in group.members:
                return ConsumerMember(member_id)
            member = group.member(member_id)
        elif is_joining:
            return self.instance(group, member_id, request.instance_id, records, is_classic=False)
        else:
            member = heartbeat_checks.known_instance(group, request.instance_id)
            heartbeat_checks.check_instance(member, member_id)
        heartbeat_checks.check_epoch(member, request.epoch, request.owned)
        return member

    def instance(
        self,
        group: ConsumerGroup,
        member_id: str,
        instance_id: str,
        records: list[Record],
        *,
        is_classic: bool,
    ) -> ConsumerMember:
        """Return the member of an instance id that joins; it replaces the instance's previous member."""
        there = group.static_member(instance_id)
        if there is None:
            return group.members.get(member_id, ConsumerMember(member_id))
        if not is_classic and there.classic is None:
            heartbeat_checks.check_released(there, member_id)
        member = replace(there, member_id=member_id, epoch=0, previous_epoch=0)
        group_id, target = group.group_id, group.targets.get(there.member_id, {})
        records.extend(consumer_records.member_tombstones(group_id, there.member_id))
        records.append(consumer_records.member_record(group_id, member))
        records.append(consumer_records.target_record(group_id, member_id, target))
        records.append(consumer_records.assignment_record(group_id, member))
        return member

    # Members leave

    def _leave(
        self, here: GroupPartition, request: ConsumerHeartbeat, reply: Callable[[HeartbeatAnswer], None]
    ) -> None:
        group_id = request.group_id
        group = here.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            text = "not found" if group is None else "is not a consumer group"
            raise GroupError(E.GROUP_ID_NOT_FOUND, f"Group {group_id} {text}.")
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = heartbeat_checks.known_instance(group, request.instance_id)
            heartbeat_checks.check_instance(member, request.member_id)
        answer = HeartbeatAnswer(E.NONE, None, request.member_id, request.epoch)

        def call(error: ErrorCode) -> None:
            reply(_durable(answer, error))

        if request.epoch == STATIC_LEAVING_EPOCH and request.instance_id is not None:
            self.append(group_id, [consumer_records.assignment_record(group_id, member.away())], call)
        else:
            self.fence(here, group, [member], call)

    def fence(
        self, here: GroupPartition, group: ConsumerGroup, gone: Sequence[ConsumerMember], call: Call
    ) -> bool:
        """Remove members; downgrade the group if only classic members remain. Returns whether the records
        were appended."""
        group_id, gone_ids = group.group_id, {member.member_id for member in gone}
        left = [member for member in group.members.values() if member.member_id not in gone_ids]
        if gone and left and self.may_downgrade(left):
            tombstones = list(consumer_records.group_tombstones(group, group.members))
            classic = classic_of(group, left, group.targets, self.host.image, self.rebalance.now_ms)
            return self.downgrade(here, group, classic, tombstones, call, is_rebalanced=True)
        records: list[Record] = []
        for member in gone:
            records.extend(consumer_records.member_tombstones(group_id, member.member_id))
        subscriptions = group.subscriptions(left)
        for regex in dict.fromkeys(member.regex for member in gone):
            if regex and not subscriptions.regexes[regex]:
                records.append(consumer_records.regex_record(group_id, regex, None))
        if gone:
            metadata_hash, epoch = hash_of(subscriptions, self.host.image), group.epoch + 1
            records.append(consumer_records.epoch_record(group_id, epoch, metadata_hash))
            if not left:  # no member waits for a target; after timestamp 0 the next one does not wait
                records.append(consumer_records.target_epoch_record(group_id, epoch, 0))
        is_appended = self.append(group_id, records, call)
        for member in gone if is_appended else ():
            self.timers.cancel(group_id, member.member_id)
        return is_appended

    def _overdue(self, group_id: str, member_id: str, epoch: int | None) -> bool:
        here, group = self.log.state_of(group_id), self.log.find(group_id)
        if not isinstance(group, ConsumerGroup) or here is None:
            return True
        member = group.members.get(member_id)
        if member is None or epoch not in (None, member.epoch):
            return True
        return self.fence(here, group, [member], lambda _: None)

    # Downgrade to the classic protocol

    def may_downgrade(self, members: Sequence[ConsumerMember]) -> bool:
        """Return whether a group with these members becomes a classic one."""
        is_allowed = self.config.migration_policy.may_downgrade
        is_small = len(members) <= self.rebalance.config.max_size
        return is_allowed and is_small and all(member.classic is not None for member in members)

    def downgrade(
        self,
        here: GroupPartition,
        group: ConsumerGroup,
        classic: ClassicGroup,
        records: Sequence[Record],
        call: Call,
        *,
        is_rebalanced: bool,
    ) -> bool:
        """Replace a consumer group, whose tombstones are the ``records``, by a classic group. Returns
        whether the records were appended."""
        record = encode_group_key(classic.group_id), encode_group_value(record_of(classic))
        if not self.log.append(classic.group_id, [*records, record], call, is_replayed=False):
            return False
        self.timers.forget(group)
        here.groups[classic.group_id] = classic
        self.rebalance.load(classic)
        if is_rebalanced:
            self.rebalance.prepare(classic)
        return True


def _told(member: ConsumerMember, request: ConsumerHeartbeat) -> ConsumerMember:
    """Return the member with the fields of the request; a field that is left out is unchanged."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=member.assignor if request.assignor is None else request.assignor,
        topics=member.topics if request.topics is None else tuple(sorted(set(request.topics))),
        regex=member.regex if request.regex is None else request.regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _durable(answer: HeartbeatAnswer, error: ErrorCode) -> HeartbeatAnswer:
    """Return the answer once the records are durable, or the error."""
    return answer if error == E.NONE else HeartbeatAnswer(error)
