"""Which protocol a process uses as a member of its group: that of its group, or any of two while the group
changes from one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.testing.simulation.classic_membership import ClassicMembership
from txnkafka.testing.simulation.consumer_membership import ConsumerMembership

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.testing.simulation.client import Client
    from txnkafka.testing.simulation.history import Topic
    from txnkafka.testing.simulation.membership import Membership

__all__ = ["new_membership"]

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
    """The membership of a new process, with one of ``protocols``; all processes of an instance use the same.

    A static member that takes the place of one of the other protocol while the group rebalances ends that
    rebalance, and what nobody had then is nobody's until something changes, as in Apache Kafka.
    """
    if instance_id is None:
        protocol = client.random.choice(protocols)
    else:
        protocol = protocols[sum(instance_id.encode()) % len(protocols)]
    return _MEMBERSHIPS[protocol](client, group_id, topics, instance_id)
