"""Kafka's internal topics: the logs of the transaction and group coordinators.

Source: ``AutoTopicCreationManager``, ``TransactionStateManager``, ``GroupCoordinatorConfig``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.config.broker_config import LEAST_SEGMENT
from txnkafka.broker.requests import NewTopic
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from txnkafka.broker.config.broker_config import BrokerConfig

COORDINATORS_TOPICS: Final = (TRANSACTION_STATE_TOPIC, CONSUMER_OFFSETS_TOPIC)
"""They contain the state of this broker's coordinators: no client may delete or enlarge them."""


def topic_by_default(name: str, config: BrokerConfig) -> NewTopic:
    """Return the topic that the broker creates by itself for this name."""
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
    """Return the config for a segment size. Kafka refuses small segments under the public name; tests set
    them by the internal name."""
    return {"segment.bytes" if size >= LEAST_SEGMENT else "internal.segment.bytes": str(size)}
