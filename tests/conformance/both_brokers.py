"""The same directory, prepared by us, under `txnkafka serve` and under Apache Kafka."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving
from tests.unit.broker.node import Node, Producer
from txnkafka.env import LocalDataFiles, SystemClock

__all__ = ["BROKERS", "EXHAUSTED_SOON", "Running", "broker", "prepare"]

BROKERS = ("txnkafka", "Apache Kafka 4.4.0")
EXHAUSTED_SOON = 32764  # two below the last epoch that a producer id is given with


class Running(NamedTuple):
    """A broker."""

    bootstrap_servers: str
    data: Path


@contextlib.contextmanager
def broker(
    name: str, directory: Path, configs: Mapping[str, str], transactional_ids: Sequence[str]
) -> Iterator[Running]:
    """A broker, while it runs. Each of the ids is there, with an epoch that has nearly run out."""
    data = directory / "data"
    prepare(data, transactional_ids)
    if name == "txnkafka":
        options = [word for pair in configs.items() for word in ("--config", "=".join(pair))]
        with Serving(data, *options) as serving:
            yield Running(serving.address, data)
            assert serving.stop() == 0
            assert "error" not in serving.log()
        return
    kafka = KafkaBroker(directory, configs, is_static=True)
    kafka.start()
    try:
        yield Running(kafka.bootstrap_servers, data)
    finally:
        kafka.stop()


def prepare(data: Path, transactional_ids: Sequence[str]) -> None:
    """Make a data directory with transactional ids whose next epoch is EXHAUSTED_SOON + 1."""
    data.mkdir(parents=True)
    node = Node(LocalDataFiles(), str(data), now_ms=SystemClock().now_ms())
    for transactional_id in transactional_ids:
        producer = Producer(node, transactional_id)
        coordinator = node.broker.transactions.coordinator
        states = coordinator.partitions[coordinator.partition_of(transactional_id)].metadata
        states[transactional_id] = states[transactional_id]._replace(producer_epoch=EXHAUSTED_SOON)
        producer.init()
    node.close()
