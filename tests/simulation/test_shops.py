"""Transactional messages in the simulation: the database has an order if, and only if, its message is visible
exactly once. Bugs that are put into resolver, schedule and listener are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import sampled
from tests.simulation.seeds import findings
from tests.simulation.test_simulation import ORDINARY
from txnkafka.checkback.message import LocalTransactionState
from txnkafka.checkback.resolver import core, settler
from txnkafka.client.consumer.consumer_config import ConsumerConfig
from txnkafka.coordinator.half.check_schedule import NEVER, CheckSchedule
from txnkafka.coordinator.half.settlement import Settlement, chosen
from txnkafka.testing.simulation.shop_database import ShopDatabase
from txnkafka.testing.simulation.simulation import simulate

STORM = replace(
    ORDINARY, faults=("power cut", "kill", "stop", "compaction", "clock ahead"), fault_every=300,
    think_us=500, drop=0.01, duplicate=0.03, hold=0.01, lose_answer=0.02, cut_recovery=0.3, producers=1,
    plain_producers=0, shops=4,
)  # fmt: skip


@pytest.mark.parametrize("seed", sampled(range(12), every=4))
def test_messages_are_visible_exactly_if_the_database_committed(seed: int) -> None:
    report = simulate(seed, 5_000, STORM)
    assert report.findings == []
    assert report.counts["orders visible"] > 5


def test_an_outcome_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next owner settles the half again."""
    original = Settlement.end

    def without_end(self: Settlement, *arguments: Any, **more: Any) -> None:
        begin = len(self.half_rows)
        original(self, *arguments, **more)
        del self.half_rows[begin:]

    monkeypatch.setattr(Settlement, "end", without_end)
    assert "visible 2 times, and the database has it 1 times" in findings(STORM, events=5_000)


@pytest.mark.slow
def test_a_resolver_that_believes_aborted_settlements_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = core.derived

    def uncommitted(kind: type[Any], config: Any, **settings: Any) -> Any:
        if kind is ConsumerConfig:
            settings["isolation_level"] = "read_uncommitted"
        return original(kind, config, **settings)

    monkeypatch.setattr(core, "derived", uncommitted)
    assert "visible 0 times, and the database has it 1 times" in findings(STORM, events=5_000)


def test_a_half_that_is_settled_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second settlement begins before the first one is replayed."""

    def all_decided(image: Any, busy: Mapping[str, Any]) -> Any:
        return chosen(image, {})

    monkeypatch.setattr(settler, "chosen", all_decided)
    assert "visible 2 times, and the database has it 1 times" in findings(STORM, events=5_000)


def test_checks_that_are_not_sent_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckSchedule, "next", NEVER)
    assert "undecided: half " in findings(STORM, events=5_000)


@pytest.mark.slow
def test_a_check_that_does_not_fence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks for the row of an order whose transaction has not committed yet."""

    def looks(self: ShopDatabase, order: str) -> LocalTransactionState:
        found = self.rows.get(order, False)
        return LocalTransactionState.COMMIT_MESSAGE if found else LocalTransactionState.ROLLBACK_MESSAGE

    monkeypatch.setattr(ShopDatabase, "check", looks)
    assert "visible 0 times, and the database has it 1 times" in findings(STORM, events=5_000)
