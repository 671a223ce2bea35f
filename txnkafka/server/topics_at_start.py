"""Topics that the operator wants before the first client connects."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.broker.config.broker_config import MOST_PARTITIONS
from txnkafka.broker.host import CallerHost
from txnkafka.broker.requests import NewTopic
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError, KafkaError
from txnkafka.model import validate_topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.requests import TopicResult
    from txnkafka.env import Clock

LOG = logging.getLogger("txnkafka.server")


def check_topics(topics: Mapping[str, int]) -> None:
    """Raise KafkaError for topics that no broker can create, before a broker is opened."""
    names_of_metrics: dict[str, str] = {}
    for name in topics:
        try:
            validate_topic(name)
        except InvalidTopicError as error:
            raise _refusal(name, str(error)) from None
        other = names_of_metrics.setdefault(name.replace(".", "_"), name)
        if other != name:
            raise _refusal(name, f"its metrics collide with {other}'s; rename one topic")
    if sum(topics.values()) > MOST_PARTITIONS:
        raise KafkaError(f"at most {MOST_PARTITIONS:,} partitions can be created at once")


def _refusal(name: str, reason: str) -> KafkaError:
    return KafkaError(f"the topic {name} cannot be created: {reason}")


def create_topics(broker: Broker, topics: Mapping[str, int], clock: Clock) -> None:
    """Create topics with these numbers of partitions, now; existing topics are not changed. Raises
    KafkaError when one cannot be created."""
    results: list[TopicResult] = []
    wanted = [NewTopic(name, count) for name, count in topics.items()]
    host = CallerHost(broker, clock.now_ms)
    host.call(broker.topics.create, wanted, results.extend)
    host.until(lambda: broker.is_idle)
    for result in results:
        if result.error == ErrorCode.TOPIC_ALREADY_EXISTS:
            count = len(broker.image.topics[result.name].partitions)
            if count != topics[result.name]:
                LOG.warning("topic %s exists with %d partitions, which stay", result.name, count)
        elif result.error != ErrorCode.NONE:
            raise _refusal(result.name, result.message or result.error.name)
