"""``ClassicMembers``: members of the classic protocol in consumer groups, while a group migrates between
protocols.

A member joins again when the coordinator reports a rebalance, as usual for its protocol; its generation
is its member epoch. But it is answered at once, and the coordinator computes its assignment.

Source: GroupMetadataManager.classicGroupJoinToConsumerGroup and related methods (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from txnkafka.coordinator.group.consumer import consumer_records, heartbeat_checks
from txnkafka.coordinator.group.consumer.consumer_config import MigrationPolicy
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_groups import ConsumerGroups
from txnkafka.coordinator.group.consumer.consumer_member import (
    ClassicMember,
    ConsumerMember,
    MemberState,
    Target,
)
from txnkafka.coordinator.group.consumer.consumer_records import Record
from txnkafka.coordinator.group.consumer.consumer_regexes import RegexChange
from txnkafka.coordinator.group.consumer.member_update import MemberUpdate
from txnkafka.coordinator.group.group_conversion import assignment_of, classic_of
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.coordinator.group.group_partition import GroupPartition
from txnkafka.coordinator.group.group_requests import Identity, Joined, JoinGroup, Left, Synced, SyncGroup
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from txnkafka.wire.schema import SchemaError

E = ErrorCode


@dataclass
class ClassicMembers:
    """Handler of classic members of consumer groups: one method for each request."""

    groups: ConsumerGroups

    # JoinGroup

    def join(
        self, here: GroupPartition, group: ConsumerGroup, request: JoinGroup, reply: Callable[[Joined], None]
    ) -> None:
        """Add a member, and answer with its generation."""
        try:
            self._join(here, group, request, reply)
        except GroupError as error:
            reply(Joined(error.code))
        except SchemaError:  # a name is too long for the record
            reply(Joined(E.UNKNOWN_SERVER_ERROR))

    def _join(
        self, here: GroupPartition, group: ConsumerGroup, request: JoinGroup, reply: Callable[[Joined], None]
    ) -> None:
        identity = request.identity
        member_id = identity.member_id or self.groups.host.new_id()
        self._check(group, member_id, request)
        if not identity.member_id and identity.group_instance_id is None and request.needs_known_id:
            reply(Joined(E.MEMBER_ID_REQUIRED, member_id))
            return
        subscription = _subscription(request)
        records: list[Record] = []
        old = self._member(group, member_id, identity, records)
        replaced = group.static_member(identity.group_instance_id)
        update = self.groups.update(group, old, _told(old, request, subscription), records)
        is_named = update.write_member()
        is_new = self.groups.regexes.update(update) is not RegexChange.NONE or is_named
        update.write_epoch(is_needed=is_new)
        claimed = self._claimed(subscription)
        if replaced is not None and replaced.classic is None and self._is_last(group, replaced):
            self._downgrade(here, update, replaced, claimed, reply, is_subscription_new=is_new)
            return
        target_epoch, target = update.write_targets()
        has_stepped = update.reconcile(target_epoch, target, claimed, is_subscription_new=is_new)
        joined = _joined(update.new)

        def durable(error: ErrorCode) -> None:
            reply(joined if error == E.NONE else Joined(error))

        if self.groups.append(group.group_id, records, durable):
            self.groups.settle(here, update, has_stepped=has_stepped)
            timers = self.groups.timers
            timers.expect(group.group_id, member_id, request.session_timeout_ms)
            timers.expect_sync(group.group_id, member_id, request.rebalance_timeout_ms)

    def _check(self, group: ConsumerGroup, member_id: str, request: JoinGroup) -> None:
        if self.groups.config.migration_policy is MigrationPolicy.DISABLED:
            raise GroupError(E.INCONSISTENT_GROUP_PROTOCOL, "The migration of groups is disabled.")
        heartbeat_checks.check_room(group, member_id, self.groups.config.max_size)
        names = [protocol.name for protocol in request.protocols]
        if not group.supports_classic(request.protocol_type, names):
            text = f"Member {member_id}'s protocols are not supported."
            raise GroupError(E.INCONSISTENT_GROUP_PROTOCOL, text)

    def _member(
        self, group: ConsumerGroup, member_id: str, identity: Identity, records: list[Record]
    ) -> ConsumerMember:
        instance_id = identity.group_instance_id
        if instance_id is None:
            return group.members.get(member_id, ConsumerMember(member_id))
        if not identity.member_id:
            return self.groups.instance(group, member_id, instance_id, records, is_classic=True)
        member = heartbeat_checks.known_instance(group, instance_id)
        heartbeat_checks.check_instance(member, member_id)
        return member

    def _claimed(self, subscription: dict[str, Any]) -> dict[str, list[int]]:
        """Return the partitions that the member claims to own, in existing topics."""
        topics = self.groups.host.image.topics
        return {
            topics[each["topic"]].topic_id: each["partitions"]
            for each in subscription.get("owned_partitions", ())
            if each["topic"] in topics
        }

    def _is_last(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Return whether ``replaced`` is the last member of the consumer protocol, and the group may be
        downgraded."""
        others = [member for member in group.members.values() if member.member_id != replaced.member_id]
        config = self.groups.rebalance.config
        is_small = len(group.members) <= config.max_size
        return config.consumer.migration_policy.may_downgrade and is_small and group.are_classic(others)

    def _downgrade(
        self,
        here: GroupPartition,
        update: MemberUpdate,
        replaced: ConsumerMember,
        claimed: dict[str, list[int]],
        reply: Callable[[Joined], None],
        *,
        is_subscription_new: bool,
    ) -> None:
        """Replace the last member of the consumer protocol, and downgrade the group to a classic group.

        The classic group keeps the targets, and begins a rebalance if they are outdated."""
        group, is_new = update.group, is_subscription_new
        is_rebalanced = group.assignment_epoch < update.epoch
        if not is_rebalanced:
            target = update.present_target
            update.reconcile(group.assignment_epoch, target, claimed, is_subscription_new=is_new)
        joining, old_id = update.new, replaced.member_id
        ids = [joining.member_id if member_id == old_id else member_id for member_id in group.members]
        update.records.extend(consumer_records.group_tombstones(group, ids))
        members = [member for member in group.members.values() if member.member_id != old_id]
        targets: dict[str, Target] = {**group.targets, joining.member_id: group.targets.get(old_id, {})}
        image, now_ms = self.groups.host.image, self.groups.rebalance.now_ms
        classic = classic_of(group, [*members, joining], targets, image, now_ms)

        def durable(error: ErrorCode) -> None:
            reply(_joined(joining) if error == E.NONE else Joined(error))

        self.groups.downgrade(here, group, classic, update.records, durable, is_rebalanced=is_rebalanced)

    # SyncGroup, Heartbeat and LeaveGroup

    def sync(self, group: ConsumerGroup, request: SyncGroup, reply: Callable[[Synced], None]) -> None:
        """Return a member's assignment."""
        try:
            member, classic = self._of(group, request.identity)
            _check_protocol(classic, request)
            if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
                self.groups.timers.expect_join(group.group_id, member)
                raise GroupError(E.REBALANCE_IN_PROGRESS, "A new rebalance is triggered.")
        except GroupError as error:
            reply(Synced(error.code))
            return
        group_id, member_id = group.group_id, member.member_id
        self.groups.timers.synced(group_id, member_id)
        self.groups.timers.expect(group_id, member_id, classic.session_timeout_ms)
        assignment = assignment_of(member.assigned, classic.protocols[0].metadata, self.groups.host.image)
        answer = Synced(E.NONE, assignment, request.protocol_type, request.protocol)
        self.groups.append(group_id, (), lambda error: reply(answer if error == E.NONE else Synced(error)))

    def heartbeat(self, group: ConsumerGroup, identity: Identity) -> ErrorCode:
        """Restart the session timeout of a member; answer REBALANCE_IN_PROGRESS when its partitions
        change."""
        try:
            member, classic = self._of(group, identity)
        except GroupError as error:
            return error.code
        self.groups.timers.expect(group.group_id, member.member_id, classic.session_timeout_ms)
        is_late = member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS
        is_waiting = member.state is MemberState.UNRELEASED_PARTITIONS
        if not is_late and not (is_waiting and not group.waits_for_others(member)):
            return E.NONE
        self.groups.timers.expect_join(group.group_id, member)
        return E.REBALANCE_IN_PROGRESS

    def _of(self, group: ConsumerGroup, identity: Identity) -> tuple[ConsumerMember, ClassicMember]:
        """Return the member that sent a request. Raises GroupError for another generation, instance or
        protocol."""
        if identity.group_instance_id is None:
            member = group.member(identity.member_id)
        else:
            member = heartbeat_checks.known_instance(group, identity.group_instance_id)
            heartbeat_checks.check_instance(member, identity.member_id)
        if member.classic is None:
            text = f"Member {member.member_id} does not use the classic protocol."
            raise GroupError(E.UNKNOWN_MEMBER_ID, text)
        if member.epoch != identity.generation:
            text = f"The request generation id {identity.generation} is not equal to the member epoch"
            raise GroupError(E.ILLEGAL_GENERATION, f"{text} {member.epoch} of member {member.member_id}.")
        return member, member.classic

    def leave(
        self, here: GroupPartition, group: ConsumerGroup, leaving: Sequence[Identity], reply: Left
    ) -> None:
        """Remove members of either protocol. An administrator names a static member by its instance id
        alone."""
        errors: list[ErrorCode] = []
        gone: dict[str, ConsumerMember] = {}
        for identity in leaving:
            try:
                if identity.group_instance_id is None:
                    member = group.member(identity.member_id)
                else:
                    member = heartbeat_checks.known_instance(group, identity.group_instance_id)
                    if identity.member_id:
                        heartbeat_checks.check_instance(member, identity.member_id)
                gone[member.member_id] = member
                errors.append(E.NONE)
            except GroupError as error:
                errors.append(error.code)
        self.groups.fence(here, group, list(gone.values()), lambda error: reply(error, errors))


def _subscription(request: JoinGroup) -> dict[str, Any]:
    fields = decode_subscription(request.protocols[0].metadata)
    if fields is None:
        raise GroupError(E.UNKNOWN_SERVER_ERROR, "Malformed embedded consumer protocol in the subscription.")
    return fields


def _told(member: ConsumerMember, request: JoinGroup, subscription: dict[str, Any]) -> ConsumerMember:
    instance_id, timeout_ms = request.identity.group_instance_id, request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.get("rack_id") or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topics=tuple(sorted(set(subscription["topics"]))),
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMember(request.session_timeout_ms, tuple(request.protocols)),
    )


def _joined(member: ConsumerMember) -> Joined:
    protocol = member.classic.protocols[0].name if member.classic is not None else None
    return Joined(E.NONE, member.member_id, member.epoch, PROTOCOL_TYPE, protocol)


def _check_protocol(classic: ClassicMember, request: SyncGroup) -> None:
    if request.protocol_type not in (None, PROTOCOL_TYPE):
        raise GroupError(E.INCONSISTENT_GROUP_PROTOCOL, "The protocol type differs from the group's.")
    if request.protocol not in (None, classic.protocols[0].name):
        raise GroupError(E.INCONSISTENT_GROUP_PROTOCOL, "The protocol differs from the join response.")
