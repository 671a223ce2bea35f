"""Bugs of groups of the consumer protocol that are put into the engine are found by a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import sampled
from tests.simulation.seeds import findings
from tests.simulation.test_group_bugs import ORDINARY_GROUPS
from txnkafka.coordinator.group.consumer import consumer_groups
from txnkafka.coordinator.group.consumer.consumer_groups import ConsumerGroups
from txnkafka.coordinator.group.consumer.member_reconciliation import Reconciliation
from txnkafka.coordinator.group.consumer.member_timers import MemberTimers
from txnkafka.coordinator.group.group_log import GroupLog
from txnkafka.coordinator.group.offsets import offset_manager
from txnkafka.error_codes import ErrorCode
from txnkafka.testing.simulation.simulation import simulate

CONSUMERS = replace(
    ORDINARY_GROUPS, copiers=3, group_consumers=3, copier_protocols=("consumer",),
    reader_protocols=("consumer",), session_timeout_ms=300, rebalance_timeout_ms=100,
)  # fmt: skip
RARE = replace(CONSUMERS, think_us=20_000, producers=1, plain_producers=0, copiers=0)
MIXED = replace(CONSUMERS, copier_protocols=("classic", "consumer"), reader_protocols=("classic", "consumer"))
BUSY = replace(MIXED, faults=("second instance",), fault_every=80)
POWER_OF_CONSUMERS = replace(
    CONSUMERS, faults=("power cut",), sync_us=5_000, fault_every=40, session_timeout_ms=1_000,
    think_us=20_000, producers=1, plain_producers=0,
)  # fmt: skip


@pytest.mark.parametrize("swarm", [CONSUMERS, MIXED], ids=["consumer", "both"])
def test_an_ordinary_run_finds_nothing(swarm: Any) -> None:
    report = simulate(1, 10_000, swarm)
    assert report.findings == []
    for name in ("copies committed", "copies aborted", "consumer joined", "partitions taken"):
        assert report.counts[name] > 5


def always(*_: object) -> bool:
    """Everything is so."""
    return True


def nothing(*_: object, **__: object) -> None:
    """Nothing is done."""


def everybody(*_: object) -> ErrorCode | None:
    """Every member, and everybody who says to be one, may commit."""
    return None


def at_once(append: Any) -> Callable[..., Any]:
    """A heartbeat is answered when its records are appended."""

    def append_records(
        self: GroupLog, group_id: str, records: Any, call: Any, *more: Any, **named: Any
    ) -> Any:
        done = append(self, group_id, records, nothing, *more, **named)
        call(ErrorCode.NONE)
        return done

    return append_records


def without_partitions(consumer_of: Any) -> Callable[..., Any]:
    """The members of the classic group have no partitions when they are members of the new group."""

    def convert(*arguments: Any) -> Any:
        group = consumer_of(*arguments)
        group.targets.clear()
        for member in list(group.members.values()):
            group.put(replace(member, assigned={}))
        return group

    return convert


def without_a_rebalance(downgrade: Any) -> Callable[..., None]:
    """The members of the new classic group keep what they have."""

    def convert(*arguments: Any, is_rebalanced: bool) -> None:
        downgrade(*arguments, is_rebalanced=False)

    return convert


def never(*_: object) -> bool:
    """Nothing is so."""
    return False


PLANTED: dict[str, tuple[Any, str, Any, Any, str]] = {
    "partitions are free before they are given up": (
        Reconciliation, "_is_free", always, CONSUMERS, "owned-by-two|stale-commit|copied-twice",
    ),
    "every member may commit": (
        offset_manager, "consumer_refusal", everybody, CONSUMERS, "stale-commit|copied-twice|lost-offset",
    ),
    "heartbeats are answered before they are durable": (
        GroupLog, "append", at_once(GroupLog.append), POWER_OF_CONSUMERS, "member-lost",
    ),
    "members that give up nothing are not expelled": (
        MemberTimers, "expect_revocation", nothing, RARE, "unassigned|unseen|unavailable|stuck",
    ),
    "members that are gone are not expelled": (
        MemberTimers, "expect", nothing, RARE, "unassigned|unseen|stuck",
    ),
    "nobody is asked what it has given up": (
        Reconciliation, "_owns", never, CONSUMERS, "owned-by-two|stale-commit|copied-twice",
    ),
    "partitions are lost in an upgrade": (
        consumer_groups, "consumer_of", without_partitions(consumer_groups.consumer_of), BUSY,
        "owned-by-two|stale-commit|copied-twice",
    ),
    "no rebalance follows a downgrade": (
        ConsumerGroups, "downgrade", without_a_rebalance(ConsumerGroups.downgrade),
        replace(
            BUSY, copiers=1, group_consumers=1, session_timeout_ms=1_000, rebalance_timeout_ms=600
        ),
        "unassigned|unseen|stuck",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(PLANTED, every=4))
def test_a_bug_of_members_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead, swarm, text = PLANTED[name]
    monkeypatch.setattr(where, what, instead)
    assert re.search(text, findings(swarm, events=3_000))
