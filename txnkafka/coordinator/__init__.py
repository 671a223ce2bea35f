"""The state of the transaction and group coordinators, built by replaying their logs, and their decisions.

No module here uses files, clocks or sockets. Only the method ``replay`` changes a state; the owner of a
coordinator's log and a reader of its files call the same method. This package exports the names for readers;
``txn_coordinator``, the owner of transactional ids, is imported from its own module, so that a reader does
not load it.
"""

from __future__ import annotations

from txnkafka.coordinator.group.offsets.committed_offsets import CommittedOffset, Offsets
from txnkafka.coordinator.log_event import KEPT_RECORD, LogEvent, log_events
from txnkafka.coordinator.partitions import (
    CONSUMER_OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    partition_for,
    string_hash,
)
from txnkafka.coordinator.txn.transaction_states import TransactionStates

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
