"""Fixtures for tests of programs that use Kafka; pytest finds them when txnkafka is installed.

    def test_orders(kafka_broker):                       # a broker in a process of its own, clean topics
        service = Service(bootstrap_servers=kafka_broker.bootstrap_servers)

    def test_in_process(kafka_embedded):                 # a txnkafka.Broker in memory
        producer = kafka_embedded.producer()

    def test_timeout(kafka_broker, kafka_clock):
        kafka_clock.advance(seconds=60)                  # without waiting

    def test_stuck(kafka_broker, kafka_faults):
        kafka_faults.hang_transaction("orders", 0)

The process of ``kafka_broker`` is started once for each session. A test that moves its clock or plans a fault
uses it up, and the next test gets a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.embedded import Broker
    from txnkafka.testing.broker_process import BrokerProcess
    from txnkafka.testing.fault_plan import FaultPlan
    from txnkafka.testing.movable_clock import MovableClock


class KafkaClock(Protocol):
    """The clock of the test's broker."""

    def advance(self, seconds: float) -> None:
        """Move the clock forward. The broker has done what is due then when this returns: it has aborted
        transactions after their timeout, and removed members without heartbeats."""


class KafkaFaults(Protocol):
    """Faults of the test's broker."""

    def hang_transaction(self, topic: str, partition: int = 0, records: int = 1) -> int:
        """Append records of a transaction that no coordinator knows; returns its producer id. It holds back
        read_committed consumers until ``Admin.abort_transaction``."""

    def fail_next_flush(self) -> None:
        """Let the next sync to the disk fail with EIO. The partitions in it accept no writes until a
        restart."""

    def drop_connections(self) -> int:
        """Close the connections of all clients; returns their number."""

    def kill(self) -> None:
        """Kill the broker with SIGKILL. Only for ``kafka_broker``."""

    def restart(self) -> None:
        """Kill the broker, unless that has been done, and start it again on its port. Only for
        ``kafka_broker``."""


class _Processes:
    """The broker process of a session."""

    def __init__(self) -> None:
        self._current: BrokerProcess | None = None

    def fresh(self) -> BrokerProcess:
        """Return a broker without topics and groups of users."""
        from txnkafka.testing.broker_process import BrokerProcess

        if self._current is not None and (self._current.is_used_up or not self._current.is_running):
            self.close()
        if self._current is None:
            self._current = BrokerProcess()
        return self._current

    def close(self) -> None:
        """Stop the broker."""
        if self._current is not None:
            self._current.close()
            self._current = None


@pytest.fixture(scope="session")
def _kafka_processes() -> Iterator[_Processes]:
    processes = _Processes()
    yield processes
    processes.close()


@pytest.fixture
def kafka_broker(_kafka_processes: _Processes) -> Iterator[BrokerProcess]:
    """A broker in a process of its own, for any client: ``kafka_broker.bootstrap_servers``. It has no topics
    and groups of earlier tests."""
    broker = _kafka_processes.fresh()
    yield broker
    if broker.is_running and not broker.is_used_up:
        broker.clean()


class _Embedded:
    """An embedded broker with its clock and its plan of faults."""

    def __init__(self) -> None:
        from txnkafka.testing.broker_faults import in_memory

        self.broker: Broker
        self.clock: MovableClock
        self.plan: FaultPlan
        self.broker, self.clock, self.plan = in_memory()

    def advance(self, seconds: float) -> None:
        from txnkafka.testing import broker_faults

        broker_faults.advance(self.broker, self.clock, round(seconds * 1000))

    def hang_transaction(self, topic: str, partition: int = 0, records: int = 1) -> int:
        from txnkafka.testing import broker_faults

        return broker_faults.hang_transaction(self.broker, topic, partition, records)

    def fail_next_flush(self) -> None:
        self.plan.fails = self.plan.counted + 1

    def drop_connections(self) -> int:
        from txnkafka.testing import broker_faults

        return broker_faults.drop_connections(self.broker)

    def kill(self) -> NoReturn:
        raise NotImplementedError("kafka_embedded is in the process of the test: use kafka_broker")

    restart = kill


@pytest.fixture
def _kafka_in_process() -> Iterator[_Embedded]:
    embedded = _Embedded()
    yield embedded
    embedded.broker.close()


@pytest.fixture
def kafka_embedded(_kafka_in_process: _Embedded) -> Broker:
    """A new ``txnkafka.Broker`` in memory, in the process of the test."""
    return _kafka_in_process.broker


def _broker_of(request: pytest.FixtureRequest) -> BrokerProcess | _Embedded:
    name = "_kafka_in_process" if "kafka_embedded" in request.fixturenames else "kafka_broker"
    found: BrokerProcess | _Embedded = request.getfixturevalue(name)
    return found


@pytest.fixture
def kafka_clock(request: pytest.FixtureRequest) -> KafkaClock:
    """The clock of ``kafka_embedded``, if the test has it, or else of ``kafka_broker``."""
    return _broker_of(request)


@pytest.fixture
def kafka_faults(request: pytest.FixtureRequest) -> KafkaFaults:
    """The faults of ``kafka_embedded``, if the test has it, or else of ``kafka_broker``."""
    return _broker_of(request)
