"""What the coordinators of transactions and groups know and decide.

Nothing here knows files, clocks or sockets. State is what a replay of the coordinators' logs makes; each kind
has one method that changes it, ``replay``, which the owner of a log and a reader of its files call alike.
A reader finds here what it needs. ``txn_coordinator`` is the owner of transactional ids, and is imported from
its own module, so that a reader does not load it.
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
