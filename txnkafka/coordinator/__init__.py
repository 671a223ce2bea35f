"""What the coordinators of transactions and groups know: state that a replay of their logs makes.

Nothing here knows files, clocks or sockets. Each state has one method that changes it: ``replay``, which
takes a ``LogEvent``. The owner of a coordinator's log and a reader of its files call the same one.
"""

from __future__ import annotations

from txnkafka.coordinator.log_event import KEPT_RECORD, LogEvent, log_events
from txnkafka.coordinator.offsets import CommittedOffset, Offsets
from txnkafka.coordinator.partitions import (
    CONSUMER_OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    partition_for,
    string_hash,
)
from txnkafka.coordinator.transaction_states import TransactionStates

__all__ = [
    "CONSUMER_OFFSETS_TOPIC",
    "KEPT_RECORD",
    "TRANSACTION_STATE_TOPIC",
    "CommittedOffset",
    "LogEvent",
    "Offsets",
    "TransactionStates",
    "log_events",
    "partition_for",
    "string_hash",
]
