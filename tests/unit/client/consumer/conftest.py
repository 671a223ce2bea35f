"""A broker in memory for the tests of a module, whose groups do not wait for more members."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.unit.client.consumer.wire_client import WireClient
from txnkafka import Broker

_NUMBERS = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker.in_memory(group_initial_rebalance_delay_ms=0) as opened:
        yield opened


@pytest.fixture(scope="module")
def wire(broker: Broker) -> WireClient:
    return WireClient(broker)


@pytest.fixture
def topic() -> str:
    """The name of a topic that no other test has."""
    return f"topic-{next(_NUMBERS)}"
