"""A broker in memory for the tests of a module, whose groups rebalance fast."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.unit.client.consumer.wire_client import WireClient
from txnkafka import Broker
from txnkafka.model import TopicPartition

_NUMBERS = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.heartbeat.interval.ms": 50,
        "group.consumer.heartbeat.interval.ms": 50,
    }
    with Broker.in_memory(**settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def wire(broker: Broker) -> WireClient:
    return WireClient(broker)


@pytest.fixture
def topic() -> str:
    """The name of a topic that no other test has."""
    return f"topic-{next(_NUMBERS)}"


@pytest.fixture
def ten(broker: Broker, wire: WireClient, topic: str) -> TopicPartition:
    """A partition with ten records."""
    wire.create(topic)
    wire.values(TopicPartition(topic, 0), *(str(number).encode() for number in range(10)))
    return TopicPartition(topic, 0)
