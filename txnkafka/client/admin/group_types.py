"""Arguments and results of the calls of ``Admin`` about groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from txnkafka.model import TopicPartition


class GroupListing(NamedTuple):
    """A group in the list of all groups. ``state`` and ``type`` are "" from a broker before Kafka 2.6 and
    3.7; ``type`` is ``classic`` or ``consumer`` (KIP-848)."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class MemberDescription(NamedTuple):
    """A member of a group. ``target_assignment``, ``epoch`` and ``subscription`` are of the consumer protocol
    (KIP-848): partitions that the member will have, the assignment epoch that it has, its topics."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] | None = None
    epoch: int | None = None
    subscription: tuple[str, ...] | None = None


class GroupDescription(NamedTuple):
    """A group with its members. ``coordinator`` is a node id. Epochs are None for the classic protocol;
    ``assignor`` is the name of the assignor, "" while the group rebalances or is empty."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


class MemberToRemove(NamedTuple):
    """A member to remove from a group: a static member by its ``group.instance.id``, or a member id."""

    group_instance_id: str | None = None
    member_id: str = ""
