"""Producers with two-phase commit in the simulation: nothing is found, and bugs that are put in are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import sampled
from tests.simulation.seeds import findings
from tests.simulation.test_simulation import ORDINARY
from txnkafka.client.producer.transactions import ProducerTransactions
from txnkafka.coordinator.txn import init_producer_id, txn_state
from txnkafka.coordinator.txn.txn_events import InitProducerId, Timeout
from txnkafka.testing.simulation.simulation import simulate

STORM = replace(
    ORDINARY, faults=("power cut", "kill", "stop", "second instance", "clock ahead"), fault_every=60,
    think_us=500, drop=0.01, duplicate=0.03, hold=0.01, lose_answer=0.02, cut_recovery=0.3, producers=1,
    plain_producers=0, preparers=2,
)  # fmt: skip


@pytest.mark.parametrize("seed", sampled(range(12), every=4))
def test_records_are_there_exactly_if_the_database_committed(seed: int) -> None:
    report = simulate(seed, 2_500, STORM)
    assert report.findings == []
    assert report.counts["transaction committed"]


def test_a_kept_transaction_that_is_aborted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = init_producer_id.init_producer_id

    def aborts(metadata: Any, event: InitProducerId, setting: Any) -> Any:
        return original(metadata, event._replace(keep_prepared_txn=False), setting)

    monkeypatch.setitem(txn_state.RULES, InitProducerId, aborts)
    assert "lost-write: " in findings(STORM, events=2_500)


def test_a_prepared_transaction_that_times_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = txn_state.time_out

    def limited(metadata: Any, event: Timeout, setting: Any) -> Any:
        if metadata is not None:
            metadata = metadata._replace(transaction_timeout_ms=min(metadata.transaction_timeout_ms, 300))
        return original(metadata, event, setting)

    monkeypatch.setitem(txn_state.RULES, Timeout, limited)
    assert "lost-write: " in findings(STORM, events=2_500)


def test_a_producer_that_always_commits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def commits(self: ProducerTransactions, _: object) -> None:
        if self.txn is not None and self.txn.prepared.has_transaction:
            await self.commit()

    monkeypatch.setattr(ProducerTransactions, "complete", commits)
    assert "G1a: " in findings(STORM, events=2_500)
