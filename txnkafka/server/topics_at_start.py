"""Topics that the operator wants to be there before the first client comes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.broker.requests import NewTopic
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.requests import TopicResult
    from txnkafka.env import Clock

__all__ = ["create_topics", "settle"]

LOG = logging.getLogger("txnkafka.server")


def create_topics(broker: Broker, topics: Mapping[str, int], clock: Clock) -> None:
    """Create topics with so many partitions each, here and now; those that exist stay as they are. Raises
    KafkaError when one cannot be created."""
    results: list[TopicResult] = []
    wanted = [NewTopic(name, count) for name, count in topics.items()]
    broker.topics.create(wanted, results.extend, now_ms=clock.now_ms())
    settle(broker, clock)
    for result in results:
        if result.error == ErrorCode.TOPIC_ALREADY_EXISTS:
            count = len(broker.image.topics[result.name].partitions)
            if count != topics[result.name]:
                LOG.warning("topic %s has %d partitions and keeps them", result.name, count)
        elif result.error != ErrorCode.NONE:
            reason = result.message or result.error.name
            raise KafkaError(f"the topic {result.name} cannot be created: {reason}")


def settle(broker: Broker, clock: Clock) -> None:
    """Run flushes and work of the broker until there is none left, waiting for the disk."""
    while not broker.is_idle:
        work = broker.begin_work()
        if work is not None:
            error: Exception | None = None
            try:
                work.run()
            except (KafkaError, OSError) as raised:
                error = raised
            broker.finish_work(work, error, now_ms=clock.now_ms())
        flush = broker.begin_flush()
        if flush is not None:
            broker.finish_flush(flush, flush.run(), now_ms=clock.now_ms())
