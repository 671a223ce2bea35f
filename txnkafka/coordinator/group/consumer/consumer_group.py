"""``ConsumerGroup``: members and target assignments of a group of the consumer protocol.

``epoch`` grows when the partitions must be assigned anew, ``assignment_epoch`` follows with the new
assignment, and each member follows with its heartbeats. Only records of the log change a group, when they are
appended and when they are loaded.

Source: ConsumerGroup, ModernGroup (KIP-848).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember, MemberState, Owned, Target
from txnkafka.coordinator.group.consumer.subscriptions import ResolvedRegex, Subscriptions
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.error_codes import ErrorCode

NOT_CHECKED: Final = -1


class ConsumerGroup:
    """One group: ``members`` by id, ``static`` member ids by instance id, ``targets`` by member id,
    ``regexes`` by pattern, ``subscribers`` the number of members for each pattern, ``votes`` for each
    assignor.

    Not in the log: ``checked`` is ``topic_changes`` of the image when the hash of the topics was last
    compared, ``resolved`` is ``topic_creations`` when the patterns were last resolved."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}
        self.targets: dict[str, Target] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.subscribers: Counter[str] = Counter()
        self.votes: Counter[str] = Counter()
        self.has_old_metadata = False  # a record written before Kafka 4.1
        self.checked = self.resolved = NOT_CHECKED
        self._owners: dict[str, dict[int, int]] = {}  # member epochs by topic id and partition

    @property
    def state(self) -> str:
        """The name of the state."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        is_stable = all(member.is_reconciled(self.assignment_epoch) for member in self.members.values())
        return "Stable" if is_stable else "Reconciling"

    # Members

    def member(self, member_id: str) -> ConsumerMember:
        """Return a member. Raises GroupError with UNKNOWN_MEMBER_ID."""
        found = self.members.get(member_id)
        if found is None:
            text = f"Member {member_id} is not a member of group {self.group_id}."
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member of an instance id, or None."""
        return self.members.get(self.static.get(instance_id or "", ""))

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or replace the one with the same id."""
        self._forget(self.members.get(member.member_id))
        self.members[member.member_id] = member
        if member.regex:
            self.subscribers[member.regex] += 1
        if member.assignor is not None:
            self.votes[member.assignor] += 1
        for owned in (member.assigned, member.revoking):
            self._own(owned, member.epoch)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member."""
        self._forget(self.members.pop(member_id, None))

    def _forget(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        self._disown(member)
        instance_id = member.instance_id
        if instance_id is not None and self.static.get(instance_id) == member.member_id:
            del self.static[instance_id]
        if member.regex:
            self.subscribers[member.regex] -= 1
            if not self.subscribers[member.regex]:
                del self.subscribers[member.regex]
        if member.assignor is not None:
            self.votes[member.assignor] -= 1
            if not self.votes[member.assignor]:
                del self.votes[member.assignor]

    def with_member(self, member: ConsumerMember) -> list[ConsumerMember]:
        """Return the members with this one, which replaces a member of the same id or instance id."""
        replaced = self.static_member(member.instance_id)
        gone = {member.member_id} if replaced is None else {member.member_id, replaced.member_id}
        return [*(each for each in self.members.values() if each.member_id not in gone), member]

    def subscriptions(self, members: Iterable[ConsumerMember] | None = None) -> Subscriptions:
        """Return the subscriptions of ``members``, by default of all."""
        return Subscriptions(self.members.values() if members is None else members, self.regexes)

    def assignor(
        self, known: Iterable[str], old: ConsumerMember | None = None, new: ConsumerMember | None = None
    ) -> str:
        """Return the assignor that most members prefer, else the first of those ``known``.

        ``new`` counts in place of ``old``, if given. Of two with equal votes the one wins that no member
        preferred before, or uniform, following the order of Java's hash table
        (``computePreferredServerAssignor``)."""
        names = [*known]
        votes = Counter({name: count for name, count in self.votes.items() if name in names})
        order = sorted(votes, key=str, reverse=True)
        for member, change in ((old, -1), (new, 1)):
            name = None if member is None else member.assignor
            if name in names:
                votes[name] += change
                if not votes[name]:
                    order.remove(name)
                elif name not in order:
                    order.insert(0, name)
        return str(max(order, key=lambda name: votes[name])) if order else names[0]

    # Owners of partitions

    def owner_epoch(self, topic_id: str, partition: int) -> int:
        """Return the epoch of the member that owns a partition; -1 without an owner."""
        return self._owners.get(topic_id, {}).get(partition, -1)

    def _own(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, epoch))

    def _disown(self, member: ConsumerMember) -> None:
        """Release a member's partitions, except those that another member owns by now."""
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                owners = self._owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member.epoch:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Return whether another member still owns a partition of this member's target."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            number not in member.assigned.get(topic_id, {}) and self.owner_epoch(topic_id, number) != -1
            for topic_id, numbers in self.targets.get(member.member_id, {}).items()
            for number in numbers
        )

    # Members of the classic protocol

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a classic member with these protocols can join."""
        classic = [member.classic for member in self.members.values() if member.classic is not None]
        counts = Counter(name for each in classic for name in {protocol.name for protocol in each.protocols})
        return protocol_type == "consumer" and any(counts[name] == len(classic) for name in names)

    def are_classic(self, members: Iterable[ConsumerMember]) -> bool:
        """Return whether all these members use the classic protocol."""
        return all(member.classic is not None for member in members)
