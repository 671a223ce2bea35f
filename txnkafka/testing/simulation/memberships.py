"""Selects the protocol of a group member: its group's protocol, or one of two while the group changes from
one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.testing.simulation.classic_membership import ClassicMembership
from txnkafka.testing.simulation.consumer_membership import ConsumerMembership

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.testing.simulation.client import Client
    from txnkafka.testing.simulation.history import Topic
    from txnkafka.testing.simulation.membership import Membership

_MEMBERSHIPS: Final = {
    "classic": ClassicMembership,
    "consumer": ConsumerMembership,
}


def new_membership(
    client: Client,
    protocols: tuple[str, ...],
    group_id: str,
    topics: Sequence[Topic],
    instance_id: str | None,
) -> Membership:
    """Return the membership of a new process, with one of ``protocols``; all processes of an instance use the
    same.

    A static member that replaces one of the other protocol during a rebalance ends the rebalance, and
    partitions without an owner stay unassigned until the next change, as in Apache Kafka."""
    if instance_id is None:
        protocol = client.random.choice(protocols)
    else:
        protocol = protocols[sum(instance_id.encode()) % len(protocols)]
    return _MEMBERSHIPS[protocol](client, group_id, topics, instance_id)
