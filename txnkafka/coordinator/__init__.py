"""The state of transaction and group coordinators, built by a replay of their logs.

No module here uses files, clocks or sockets. Each state is changed only by its method ``replay``, which takes
a ``LogEvent``; the owner of a coordinator's log and a reader of its files call the same method.
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
