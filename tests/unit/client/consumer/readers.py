"""Consumers of a broker in process, and all their records."""

from __future__ import annotations

from typing import Any

from txnkafka import Broker
from txnkafka.client.consumer import Consumer, ConsumerRecord
from txnkafka.model import TopicPartition

WAIT = 10_000


def reader(broker: Broker, *partitions: TopicPartition, **settings: Any) -> Consumer:
    consumer = Consumer({"auto_offset_reset": "earliest", **settings}, transport=broker._transport)
    consumer.assign(partitions)
    return consumer


def take(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Poll until there are so many records, and check that no more come."""
    found: list[ConsumerRecord] = []
    while len(found) < count:
        some = consumer.poll(WAIT)
        assert some, f"{len(found)} of {count} records came"
        found += some
    return found + consumer.poll(0)
