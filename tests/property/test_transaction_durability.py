"""Crashes and failed flushes at any moment, which lose any part of the data that is not durable: all promises
are kept.

The order in which data becomes durable is the coordinator's. Each wrong order is planted once, and must be
found by the same checks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import BRIEF, LONG, sampled
from tests.models.transaction_world import Partition
from tests.models.transactional_clients import Client
from tests.unit.coordinator.world import World
from txnkafka.coordinator.txn import txn_state
from txnkafka.coordinator.txn.transaction_partition import loaded_records
from txnkafka.coordinator.txn.txn_events import AddPartitions, InitProducerId, Transition
from txnkafka.coordinator.txn.txn_image import PREPARED, completed, image_of, record_of
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records import TransactionMetadata, TransactionState

STEPS = 200
RUNS = 20_000 if LONG else 60 if BRIEF else 300  # seed 229 finds bug 403 of the bank
FAULTS = ("data", "prepare", "markers", "ongoing")


class Run:
    """Clients, consecutive servers, and their random steps, all from one seed."""

    def __init__(self, seed: int, fault: str = "") -> None:
        self.chance = random.Random(seed)
        self.fault = fault
        self.crashes = 0
        self.world = World(version=self.chance.choice([1, 2]), fault=fault)
        names = self.chance.choice(["abc", "abc", "aab"])
        sees_appends = random.Random(f"in process {seed}").random() < 0.5
        self.clients = [
            Client(
                name, label, self.chance.choice([0, 2]),
                waits_for_data=self.chance.random() < 0.7, sees_appends=sees_appends,
            )
            for name, label in zip(names, "xyz", strict=True)
        ]  # fmt: skip
        if self.chance.random() < 0.5:
            self.start_late("a", self.chance.randrange(32760, 32767))

    def start_late(self, name: str, epoch: int) -> None:
        """Start with an id that had many transactions before."""
        world = self.world
        world.init(name)
        number = world.coordinator.partition_of(name)
        record = record_of(world.state(name)._replace(producer_epoch=epoch))
        world.host.state_logs[number].append(record.encoded(1))
        world.host.state_logs[number].flush()
        world.coordinator.partitions[number].replay(record)

    def step(self) -> None:
        action = self.chance.random()
        host = self.world.host
        host.answer_early()
        if action < 0.5:
            self.chance.choice(self.clients).step(host, self.chance.randrange(1_000))
        elif action < 0.96:
            waiting = [log for log in host.logs() if log.waiting]
            self.chance.choice(waiting or host.logs()).flush()
        elif action < 0.97:
            self.chance.choice(host.state_logs).fail(ErrorCode.REQUEST_TIMED_OUT)
        elif action < 0.99:
            self.world.advance(self.chance.choice([10, 1_000, 20_000]))
        else:
            self.crash()
        self.check_state()

    def crash(self) -> None:
        self.crashes += 1
        keep = iter(lambda: self.chance.randrange(1_000), None)
        logs, partitions = self.world.host.crash(keep)
        version, now = self.world.coordinator.version, self.world.now
        first_id = 1_000 * self.crashes
        self.world = World(logs, partitions, version=version, first_producer_id=first_id, fault=self.fault)
        self.world.host.now_ms = now
        self.settle()
        self.abort_unknown_transactions()
        for client in self.clients:
            client.reconnect(self.world.host, self.chance.random() < 0.7)

    def settle(self) -> None:
        for _ in range(10):
            self.world.host.settle()
            self.world.advance(100)

    def abort_unknown_transactions(self) -> None:
        """Abort the transactions that the coordinator does not have, as a broker does after an unclean
        start."""
        known = {
            each
            for state in self.world.coordinator.partitions.values()
            for each in state.open_in_partitions()
        }
        for name, log in self.world.host.partitions.items():
            for producer_id, epoch in log.open_transactions().items():
                if (name, (producer_id, epoch)) not in known:
                    log.abort_open(producer_id)
            log.flush()

    def check_state(self) -> None:
        """The state equals a reload of the durable records."""
        if self.fault:
            return
        for number, log in enumerate(self.world.host.state_logs):
            records, problems = loaded_records(log.entries[: log.durable])
            assert not problems
            loaded = {each.transactional_id: each.metadata for each in records if each.metadata is not None}
            assert self.world.coordinator.partitions[number].metadata == loaded

    def fault_found(self) -> str | None:
        """Settle, let open transactions time out, and check what a reader sees."""
        self.settle()
        self.world.host.now_ms += 10**6
        for _ in range(3):
            self.world.advance(20_000)
            self.settle()
        seen = [value for log in self.world.host.partitions.values() for value in log.visible()]
        for client in self.clients:
            for transaction in client.history:
                if found := transaction.fault(seen):
                    return f"{client.label}: {found}"
        if any(log.open_transactions() for log in self.world.host.partitions.values()):
            return "a transaction hangs"
        for client in self.clients:
            if self.world.error(InitProducerId(client.name, 60_000)) != ErrorCode.NONE:
                return "a transactional id is blocked"
        return None

    def __iter__(self) -> Iterator[int]:
        for number in range(STEPS):
            self.step()
            yield number


def outcome(seed: int, fault: str = "") -> str | None:
    run = Run(seed, fault)
    for _ in run:
        pass
    return run.fault_found()


def test_nothing_is_lost_torn_or_shown_too_early() -> None:
    committed = aborted = crashes = 0
    for seed in range(RUNS):
        run = Run(seed)
        for _ in run:
            pass
        assert run.fault_found() is None, f"seed {seed}"
        crashes += run.crashes
        for client in run.clients:
            ended = [each for each in client.history if each.outcome == ErrorCode.NONE and each.values]
            committed += sum(1 for each in ended if each.commit)
            aborted += sum(1 for each in ended if not each.commit)
    assert min(committed, aborted, crashes) > RUNS


@pytest.mark.parametrize("fault", sampled(FAULTS, every=2))
def test_a_step_that_counts_before_it_is_durable_is_found(fault: str) -> None:
    assert any(outcome(seed, fault) for seed in range(400))


def test_complete_need_not_be_durable_before_what_follows_it() -> None:
    """COMPLETE_* is only appended: see ``TransactionCoordinator``."""
    assert not any(outcome(seed, "complete") for seed in range(200))


def test_a_request_that_does_not_wait_for_complete_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    add = txn_state.RULES[AddPartitions]

    def impatient(metadata: TransactionMetadata | None, event: AddPartitions, setting: Any) -> Any:
        if metadata is None or metadata.state not in PREPARED:
            return add(metadata, event, setting)
        after = completed(metadata, setting.now_ms)
        image = image_of(after, TransactionState.ONGOING, topic_partitions=event.partitions)
        return Transition(image, record_of(image))

    monkeypatch.setitem(txn_state.RULES, AddPartitions, impatient)
    assert any(outcome(seed) for seed in range(400))


def test_data_of_a_transaction_that_is_never_aborted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "abort_open", lambda *_: None)
    found = {outcome(seed) for seed in range(200)}
    assert "a transaction hangs" in found
    assert any(fault is not None and "never committed" in fault for fault in found)


@given(st.integers(0, 2**32))
def test_other_seeds(seed: int) -> None:
    assert outcome(seed) is None
