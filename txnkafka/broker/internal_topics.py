"""Kafka's own topics: the logs of the transaction and of the group coordinator.

Source: ``AutoTopicCreationManager``, ``TransactionStateManager``, ``GroupCoordinatorConfig``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.broker_config import LEAST_SEGMENT
from txnkafka.broker.requests import NewTopic
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from txnkafka.broker.broker_config import BrokerConfig

__all__ = ["COORDINATORS_TOPICS", "topic_by_default"]

COORDINATORS_TOPICS: Final = (TRANSACTION_STATE_TOPIC, CONSUMER_OFFSETS_TOPIC)
"""They have the state of this broker's coordinators: no client deletes or enlarges them."""


def topic_by_default(name: str, config: BrokerConfig) -> NewTopic:
    """The topic that a broker creates by itself when this name is asked for."""
    if name == TRANSACTION_STATE_TOPIC:
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            configs={
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": "1",
                **_segment_bytes(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == CONSUMER_OFFSETS_TOPIC:
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            configs={
                "compression.type": "producer",
                "cleanup.policy": "compact",
                **_segment_bytes(config.offsets_topic_segment_bytes),
            },
        )
    return NewTopic(name)


def _segment_bytes(size: int) -> dict[str, str]:
    """The config of a topic. Users of Kafka cannot have small segments, and tests have them by another
    name."""
    return {"segment.bytes" if size >= LEAST_SEGMENT else "internal.segment.bytes": str(size)}
