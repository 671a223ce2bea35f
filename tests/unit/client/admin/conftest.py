"""An admin client in the process of its broker, with a clock that can be moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from txnkafka import Broker
from txnkafka.client.admin import Admin
from txnkafka.client.transport import API_OF
from txnkafka.testing import broker_faults
from txnkafka.testing.movable_clock import MovableClock


class Cluster(NamedTuple):
    """A broker of one node."""

    broker: Broker
    clock: MovableClock

    def send(self, name: str, version: int | None = None, **fields: Any) -> Any:
        """Send a request as another client, and return the response."""
        api = API_OF[name]
        transport = self.broker._transport("another")

        async def run() -> Any:
            connection = await transport.connect(transport.bootstrap[0], 0)
            number = api.announced[1] if version is None else version
            return await connection.request(name, number, api.request(**fields), 30_000)

        return self.broker._reactor.run(run())

    def hang(self, topic: str, partition: int = 0) -> int:
        return broker_faults.hang_transaction(self.broker, topic, partition)

    def advance(self, ms: int) -> None:
        broker_faults.advance(self.broker, self.clock, ms)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    broker, clock, _ = broker_faults.in_memory()
    with broker:
        yield Cluster(broker, clock)


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(transport=cluster.broker._transport) as admin:
        yield admin
