"""``ConsumerMember``: a member of a consumer group, as in the records of the log.

A member is immutable; changes replace it. Each member has two records: its metadata, and its assignment.

Source: ConsumerGroupMember, MemberState, Utils.assignmentFromTopicPartitions.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from txnkafka.coordinator.group.group_requests import Protocol

JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH = 0, -1, -2

Owned = Mapping[str, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch in which it was assigned."""
Target = Mapping[str, Sequence[int]]
"""Partitions by topic id, in ascending order."""


class MemberState(enum.IntEnum):
    """The states, by their numbers in the log. UNKNOWN is a state of a newer Kafka."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ClassicMember(NamedTuple):
    """The JoinGroup fields of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. ``topics`` are names in ascending order. ``assigned`` are its partitions, ``revoking``
    the partitions that it must revoke. A static member that has left temporarily has epoch -2. ``classic``
    is None for a member of the consumer protocol."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = ""
    assignor: str | None = None
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    classic: ClassicMember | None = None

    def is_reconciled(self, target_epoch: int) -> bool:
        """Return whether the member has the whole target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def epoch_of(self, topic_id: str, partition: int) -> int | None:
        """Return the epoch in which a partition was assigned to the member; None for a partition that it
        does not own."""
        found = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if found is None else found

    def away(self) -> ConsumerMember:
        """Return the static member after a temporary leave: it keeps its partitions, with epoch 0."""
        kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in self.assigned.items()}
        return replace(self, epoch=STATIC_LEAVING_EPOCH, assigned=kept, revoking={})

    # The fields of the two records

    def metadata(self) -> dict[str, Any]:
        """Return the fields of the metadata record (``newConsumerGroupMemberSubscriptionRecord``)."""
        classic = self.classic and {
            "session_timeout_ms": self.classic.session_timeout_ms,
            "supported_protocols": [
                {"name": protocol.name, "metadata": protocol.metadata} for protocol in self.classic.protocols
            ],
        }
        return {
            "instance_id": self.instance_id,
            "rack_id": self.rack_id,
            "client_id": self.client_id,
            "client_host": self.client_host,
            "subscribed_topic_names": list(self.topics),
            "subscribed_topic_regex": self.regex,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "server_assignor": self.assignor,
            "classic_member_metadata": classic,
        }

    def with_metadata(self, fields: Mapping[str, Any]) -> ConsumerMember:
        """Return the member with the fields of a metadata record."""
        classic = fields.get("classic_member_metadata")
        return replace(
            self,
            instance_id=fields["instance_id"],
            rack_id=fields["rack_id"],
            client_id=fields["client_id"],
            client_host=fields["client_host"],
            topics=tuple(sorted(set(fields["subscribed_topic_names"]))),
            regex=fields["subscribed_topic_regex"],
            rebalance_timeout_ms=fields["rebalance_timeout_ms"],
            assignor=fields["server_assignor"],
            classic=classic
            and ClassicMember(
                classic["session_timeout_ms"],
                tuple(Protocol(each["name"], each["metadata"]) for each in classic["supported_protocols"]),
            ),
        )

    def assignment(self) -> dict[str, Any]:
        """Return the fields of the assignment record (``newConsumerGroupCurrentAssignmentRecord``)."""
        return {
            "member_epoch": self.epoch,
            "previous_member_epoch": self.previous_epoch,
            "state": self.state.value,
            "assigned_partitions": _fields_of(self.assigned),
            "partitions_pending_revocation": _fields_of(self.revoking),
        }

    def with_assignment(self, fields: Mapping[str, Any]) -> ConsumerMember:
        """Return the member with the fields of an assignment record."""
        epoch, state = fields["member_epoch"], fields["state"]
        is_known = state in MemberState.__members__.values()
        return replace(
            self,
            epoch=epoch,
            previous_epoch=fields["previous_member_epoch"],
            state=MemberState(state) if is_known else MemberState.UNKNOWN,
            assigned=_owned(fields["assigned_partitions"], epoch),
            revoking=_owned(fields["partitions_pending_revocation"], epoch),
        )


def _fields_of(owned: Owned) -> list[dict[str, Any]]:
    found = []
    for topic_id in sorted(owned):
        partitions = sorted(owned[topic_id].items())
        numbers, epochs = [number for number, _ in partitions], [epoch for _, epoch in partitions]
        found.append({"topic_id": topic_id, "partitions": numbers, "assignment_epochs": epochs})
    return found


def _owned(found: Iterable[Mapping[str, Any]], member_epoch: int) -> Owned:
    """Return partitions with their epochs. Older brokers have written no epochs; these partitions get the
    member epoch."""
    owned: dict[str, dict[int, int]] = {}
    for each in found:
        numbers, epochs = each["partitions"], each.get("assignment_epochs")
        if epochs is None or len(epochs) != len(numbers):
            epochs = [max(member_epoch, 0)] * len(numbers)
        owned[each["topic_id"]] = dict(zip(numbers, epochs, strict=True))
    return owned
