"""What the coordinators of transactions and groups know and decide.

Nothing here knows files, clocks or sockets. State is what a replay of the coordinators' logs makes; each kind
has one method that changes it, ``replay``, which the owner of a log and a reader of its files call alike.
``TransactionCoordinator`` decides about transactions, see docs/transactions.md.
"""

from __future__ import annotations

from txnkafka.coordinator.coordinator_host import CoordinatorHost
from txnkafka.coordinator.log_event import KEPT_RECORD, LogEvent, log_events
from txnkafka.coordinator.markers import Marker
from txnkafka.coordinator.offsets import CommittedOffset, Offsets
from txnkafka.coordinator.partitions import (
    CONSUMER_OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    partition_for,
    string_hash,
)
from txnkafka.coordinator.producer_ids import ProducerIds
from txnkafka.coordinator.transaction_partition import TransactionPartition, loaded_records
from txnkafka.coordinator.transaction_states import TransactionStates
from txnkafka.coordinator.txn_config import TransactionConfig
from txnkafka.coordinator.txn_coordinator import TransactionCoordinator

__all__ = [
    "CONSUMER_OFFSETS_TOPIC",
    "KEPT_RECORD",
    "TRANSACTION_STATE_TOPIC",
    "CommittedOffset",
    "CoordinatorHost",
    "LogEvent",
    "Marker",
    "Offsets",
    "ProducerIds",
    "TransactionConfig",
    "TransactionCoordinator",
    "TransactionPartition",
    "TransactionStates",
    "loaded_records",
    "log_events",
    "partition_for",
    "string_hash",
]
