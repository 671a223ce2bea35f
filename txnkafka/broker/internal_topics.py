"""Kafka's own topics: the logs of the transaction and of the group coordinator.

Source: ``AutoTopicCreationManager``, ``TransactionStateManager``, ``GroupCoordinatorConfig``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.requests import NewTopic
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from txnkafka.broker.broker_config import BrokerConfig

__all__ = ["topic_by_default"]


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
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
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
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    return NewTopic(name)
