"""``Consumer``, its records, listener and errors."""

from __future__ import annotations

from txnkafka._core.consumer_record import ConsumerRecord
from txnkafka.client.consumer.consumer import Consumer
from txnkafka.client.consumer.consumer_config import ConsumerConfig
from txnkafka.client.consumer.consumer_errors import (
    LogTruncationError,
    NoOffsetForPartitionError,
    WakeupError,
)
from txnkafka.client.consumer.list_offsets import OffsetAndTimestamp
from txnkafka.client.consumer.rebalance_listener import RebalanceListener

__all__ = [
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "OffsetAndTimestamp",
    "RebalanceListener",
    "WakeupError",
]
