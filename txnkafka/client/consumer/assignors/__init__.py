"""Assignors of the classic protocol: pure functions from subscriptions to partitions, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnkafka.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    GroupSubscription,
    MemberSubscription,
)
from txnkafka.client.consumer.assignors.range_assignor import assign_ranges
from txnkafka.client.consumer.assignors.round_robin_assignor import assign_in_turn
from txnkafka.client.consumer.assignors.sticky_assignor import assign_cooperatively, assign_sticky

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "GroupSubscription", "MemberSubscription"]

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "range": assign_ranges,
    "roundrobin": assign_in_turn,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperatively,
}
