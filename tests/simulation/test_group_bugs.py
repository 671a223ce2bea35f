"""Bugs of groups and their offsets that are put into the engine are found by a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import sampled
from tests.simulation.seeds import findings
from tests.simulation.test_simulation import ORDINARY
from txnkafka.broker.coordinators.groups import Groups
from txnkafka.coordinator.group.classic.classic_group import ClassicGroup
from txnkafka.coordinator.group.group_log import GroupLog
from txnkafka.coordinator.group.offsets import offset_manager
from txnkafka.coordinator.group.offsets.committed_offsets import Offsets
from txnkafka.coordinator.group.offsets.group_offsets import GroupOffsets
from txnkafka.coordinator.group.offsets.offset_manager import OffsetManager
from txnkafka.error_codes import ErrorCode
from txnkafka.testing.simulation.simulation import simulate

ORDINARY_GROUPS = replace(
    ORDINARY,
    copiers=2,
    group_consumers=2,
    offset_keepers=1,
    producers=2,
    transaction_timeout_ms=3_000,
)
COPIERS = replace(
    ORDINARY_GROUPS, copiers=3, group_consumers=0, offset_keepers=0, producers=1, plain_producers=0,
    think_us=20_000,
)  # fmt: skip
POWER_OF_GROUPS = replace(ORDINARY_GROUPS, faults=("power cut",), sync_us=5_000, fault_every=150)


def test_an_ordinary_run_finds_nothing() -> None:
    report = simulate(1, 10_000, ORDINARY_GROUPS)
    assert report.findings == []
    for name in ("copies committed", "copies aborted", "generation joined", "offsets committed"):
        assert report.counts[name] > 10


def test_a_partition_without_records_has_been_read_to_its_end() -> None:
    nobody_writes = replace(ORDINARY_GROUPS, producers=0, plain_producers=0, copiers=0)
    assert simulate(1, 6_000, nobody_writes).findings == []


def unfenced(refusal: Any) -> Callable[..., Any]:
    """A commit with a transaction is taken from everybody, as before KIP-447."""

    def refuse(group: Any, identity: Any, is_transactional: bool) -> ErrorCode | None:
        return None if is_transactional else refusal(group, identity, is_transactional)

    return refuse


def of_any_generation(refusal: Any) -> Callable[..., Any]:
    """The generation of a commit is not looked at."""

    def refuse(group: Any, identity: Any, is_transactional: bool) -> ErrorCode | None:
        error: ErrorCode | None = refusal(group, identity, is_transactional)
        return None if error == ErrorCode.ILLEGAL_GENERATION else error

    return refuse


def of_any_instance(refusal: Any) -> Callable[..., Any]:
    """An older instance of a static member may commit."""

    def refuse(self: Any, *arguments: Any, **named: Any) -> ErrorCode | None:
        error: ErrorCode | None = refusal(self, *arguments, **named)
        return None if error == ErrorCode.FENCED_INSTANCE_ID else error

    return refuse


def applied_at_abort(self: Offsets, producer_id: int, committed: bool) -> None:
    """Every transaction ends as if it were committed."""
    for name, pending in self._taken(producer_id).items():
        self.committed[name] = pending


def no_marker(*_: object) -> None:
    """The group coordinator hears of no marker."""


def always_stable(fetch: Any) -> Callable[..., Any]:
    """Pending offsets are no reason to wait."""

    def fetch_unstable(self: GroupOffsets, group: str, partition: Any, *, is_stable_wanted: bool) -> Any:
        return fetch(self, group, partition, is_stable_wanted=False)

    return fetch_unstable


def at_once(append: Any) -> Callable[..., Any]:
    """A commit is acknowledged when it is appended."""

    def append_offsets(self: GroupLog, group_id: str, records: Any, call: Any, producer: Any = None) -> None:
        append(self, group_id, records, lambda _: None, producer)
        call(ErrorCode.NONE)

    return append_offsets


def same_generation(self: ClassicGroup, now_ms: int) -> None:
    """The generation does not rise."""
    next_generation(self, now_ms)
    self.generation = 1


next_generation = ClassicGroup.next_generation


def only_the_first(append: Any) -> Callable[..., Any]:
    """Of a commit of several partitions, only the first counts."""

    def append_offsets(
        self: GroupLog, group_id: str, records: Sequence[Any], call: Any, producer: Any = None
    ) -> None:
        append(self, group_id, records[:1], call, producer)

    return append_offsets


PLANTED: dict[str, tuple[Any, str, Any, Any, str]] = {
    "commits of transactions are not fenced": (
        offset_manager, "_refusal", unfenced(offset_manager._refusal), COPIERS,
        "zombie-commit|copied-twice",
    ),
    "the generation of a commit is not checked": (
        offset_manager, "_refusal", of_any_generation(offset_manager._refusal),
        replace(ORDINARY_GROUPS, faults=("second instance",), fault_every=60, session_timeout_ms=1_000),
        "zombie-commit|copied-twice|lost-offset",
    ),
    "instances are not fenced": (
        OffsetManager, "_refusal", of_any_instance(OffsetManager._refusal),
        replace(ORDINARY_GROUPS, faults=("second instance",), fault_every=60),
        "zombie-commit|stale-commit",
    ),
    "aborted offsets count": (Offsets, "_end", applied_at_abort, ORDINARY_GROUPS, "phantom-offset"),
    "markers are not applied to offsets": (
        Groups, "on_marker", no_marker, ORDINARY_GROUPS, "unseen|not-copied|stuck",
    ),
    "unstable offsets are shown": (
        GroupOffsets, "fetch", always_stable(GroupOffsets.fetch), ORDINARY_GROUPS,
        "unstable-offset|copied-twice",
    ),
    "commits are acknowledged before they are durable": (
        GroupLog, "append_offsets", at_once(GroupLog.append_offsets), POWER_OF_GROUPS, "lost-offset",
    ),
    "generations do not rise": (
        ClassicGroup, "next_generation", same_generation, ORDINARY_GROUPS, "two-owners",
    ),
    "a part of a commit is lost": (
        GroupLog, "append_offsets", only_the_first(GroupLog.append_offsets), ORDINARY_GROUPS,
        "lost-offset|copied-twice",
    ),
}  # fmt: skip
EVENTS = {"unstable offsets are shown": 6_000}


@pytest.mark.parametrize("name", sampled(PLANTED, every=4))
def test_a_bug_of_groups_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead, swarm, text = PLANTED[name]
    monkeypatch.setattr(where, what, instead)
    assert re.search(text, findings(swarm, events=EVENTS.get(name, 3_000)))
