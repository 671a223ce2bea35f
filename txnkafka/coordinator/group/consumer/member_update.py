"""``MemberUpdate``: the records that a request of a member adds to its consumer group.

The member is written if it has changed; the epoch of the group grows if its topics or its assignor have
changed; the targets of all members follow; the member takes its next step towards its target. The group
itself changes when the records are appended.

Source: GroupMetadataManager.consumerGroupHeartbeat, updateSubscriptionMetadata, maybeUpdateTargetAssignment,
maybeReconcile; TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from txnkafka.coordinator.group.assignors.assignor import GroupSpec, MemberSpec
from txnkafka.coordinator.group.consumer import consumer_records
from txnkafka.coordinator.group.consumer.consumer_config import ASSIGNORS, ConsumerGroupConfig
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember, Target
from txnkafka.coordinator.group.consumer.consumer_records import Record
from txnkafka.coordinator.group.consumer.member_reconciliation import Claimed, Reconciliation
from txnkafka.coordinator.group.consumer.subscriptions import Subscriptions
from txnkafka.coordinator.group.consumer.topic_hash import topics_hash
from txnkafka.coordinator.registry.cluster_image import ClusterImage


def hash_of(subscriptions: Subscriptions, image: ClusterImage) -> int:
    """Return the hash of the existing topics that a group is subscribed to."""
    return topics_hash(image.topics[name] for name in subscriptions.topics if name in image.topics)


@dataclass(slots=True)
class MemberUpdate:
    """One update. ``old`` is the previous member, or an empty one; ``new`` is the next. ``epoch`` is the
    group's epoch after the ``records``."""

    group: ConsumerGroup
    old: ConsumerMember
    new: ConsumerMember
    image: ClusterImage
    config: ConsumerGroupConfig
    now_ms: int
    records: list[Record]
    epoch: int = field(init=False)
    is_checked: bool = False  # whether the topics were compared
    _is_homogeneous: bool | None = None

    def __post_init__(self) -> None:
        self.epoch = self.group.epoch

    def write_member(self) -> bool:
        """Write the member if it has changed; return whether its topic names have."""
        if self.new != self.old:
            self.records.append(consumer_records.member_record(self.group.group_id, self.new))
        return self.new.topics != self.old.topics

    def changes_assignor(self) -> bool:
        """Return whether the member names another assignor, and the group prefers another one by that.

        Source: ``hasPreferredServerAssignorChanged`` of Kafka 4.4, which also returns true at each heartbeat
        of a member whose assignor has as many votes as another one, so that such a group never settles."""
        if self.new.assignor == self.old.assignor:
            return False
        known = self.config.assignors
        return self.group.assignor(known) != self.group.assignor(known, self.old, self.new)

    def write_epoch(self, *, is_needed: bool) -> None:
        """Write the next epoch of the group if it is needed, or if its topics have changed."""
        group = self.group
        if not is_needed and group.checked == self.image.topic_changes:
            return
        subscriptions = group.subscriptions(group.with_member(self.new))
        metadata_hash = hash_of(subscriptions, self.image)
        self._is_homogeneous, self.is_checked = subscriptions.is_homogeneous, True
        if is_needed or metadata_hash != group.metadata_hash:
            self.epoch += 1
            self.records.append(consumer_records.epoch_record(group.group_id, self.epoch, metadata_hash))
        if group.has_old_metadata:
            self.records.append(consumer_records.old_metadata_tombstone(group.group_id))

    def write_targets(self) -> tuple[int, Target]:
        """Write the targets of all members if a new assignment is due; return its epoch and the member's
        target."""
        group = self.group
        since_ms = self.now_ms - group.assignment_timestamp  # negative after the clock was set back
        is_due = group.assignment_timestamp == 0 or not 0 <= since_ms < self.config.assignment_interval_ms
        if group.assignment_epoch >= self.epoch or not is_due:
            return group.assignment_epoch, self.present_target
        members = {each.member_id: each for each in group.with_member(self.new)}
        spec = self._spec(members[member_id] for member_id in sorted(members))
        assignor = ASSIGNORS[group.assignor(self.config.assignors, self.old, self.new)]
        targets = assignor(spec)
        for member_id in spec.members:
            target = targets.get(member_id, {})
            if target != group.targets.get(member_id):
                record = consumer_records.target_record(group.group_id, member_id, target)
                self.records.append(record)
        record = consumer_records.target_epoch_record(group.group_id, self.epoch, self.now_ms)
        self.records.append(record)
        return self.epoch, targets.get(self.new.member_id, {})

    @property
    def present_target(self) -> Target:
        """The group's current target for the member, or for its instance id."""
        if self.new.instance_id is None:
            return self.group.targets.get(self.new.member_id, {})
        return self.group.targets.get(self.group.static.get(self.new.instance_id, ""), {})

    def _spec(self, members: Iterable[ConsumerMember]) -> GroupSpec:
        group, specs = self.group, {}
        for member in members:
            is_new = member.member_id == self.new.member_id
            target = self.present_target if is_new else group.targets.get(member.member_id, {})
            specs[member.member_id] = MemberSpec(self._topic_ids(member), target, member.instance_id)
        names, topics = self.image.topic_names, self.image.topics
        wanted = dict.fromkeys(topic_id for spec in specs.values() for topic_id in spec.topics)
        partitions = {topic_id: len(topics[names[topic_id]].partitions) for topic_id in wanted}
        is_homogeneous = self._is_homogeneous
        if is_homogeneous is None:
            is_homogeneous = group.subscriptions().is_homogeneous
        return GroupSpec(specs, partitions, is_homogeneous)

    def _topic_ids(self, member: ConsumerMember) -> tuple[str, ...]:
        """Return the ids of the existing topics that a member is subscribed to."""
        topics, resolved = self.image.topics, self.group.regexes.get(member.regex or "")
        names = {*member.topics, *(resolved.topics if resolved is not None else ())}
        return tuple(sorted(topics[name].topic_id for name in names if name in topics))

    def reconcile(
        self, target_epoch: int, target: Target, claimed: Claimed, *, is_subscription_new: bool
    ) -> bool:
        """Take the member's next step, and write it; return whether it has changed."""
        if not is_subscription_new and self.new.is_reconciled(target_epoch):
            return False
        stepped = Reconciliation(
            target_epoch, target, frozenset(self._topic_ids(self.new)), claimed, self.group.owner_epoch,
            is_subscription_new,
        ).of(self.new)  # fmt: skip
        is_changed, self.new = stepped != self.new, stepped
        if is_changed:
            self.records.append(consumer_records.assignment_record(self.group.group_id, stepped))
        return is_changed
