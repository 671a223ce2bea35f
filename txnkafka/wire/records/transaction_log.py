"""Records of ``__transaction_state``: the transaction coordinator's state of each transactional id.

The last record of a transactional id is its state; a tombstone removes it. Value version 0 is written with
``transaction.version`` 0, version 1 (flexible, KIP-890) with 1 and 2.  ``transaction_partitions`` is null in
state Empty only, and an empty array when a transaction is complete (``TransactionLog``,
``TransactionMetadata``).

The last producer epoch is written as a tagged field that Kafka 4.3.1 does not have: its readers keep unknown
tags and ignore them. Later versions of Kafka persist it as well (KAFKA-20357); without it, a retry of
InitProducerId is fenced when the coordinator was restarted in between.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS
from txnkafka.wire.records.log_record import CoordinatorRecord, LogRecord, decode_coordinator_record
from txnkafka.wire.schema import INT8, INT16, INT32, INT64, STRING, Array, Field, Message


class TransactionState(enum.IntEnum):
    """The states of a transactional id, with their numbers in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's spelling on the wire and in its tools: ``PrepareCommit``."""
        return self.name.title().replace("_", "")


class TransactionMetadata(NamedTuple):
    """The state of one transactional id; absent ids and epochs are -1, and so is the start time without a
    transaction. ``next_producer_epoch`` belongs to ``next_producer_id``, ``last_producer_epoch`` is the epoch
    that the producer had before its current one, when its retry may still come (KIP-360, KIP-890)."""

    transactional_id: str
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    state: TransactionState
    topic_partitions: frozenset[TopicPartition]
    last_update_timestamp: int
    start_timestamp: int
    client_transaction_version: int
    last_producer_epoch: int = NO_PRODUCER_EPOCH

    @classmethod
    def of(cls, record: LogRecord) -> TransactionMetadata | None:
        """Convert a decoded record; None for a tombstone and for a record that could not be decoded."""
        if record.type != TYPE or record.key is None or record.value is None or _strange(record.value):
            return None
        value = record.value
        return cls(
            transactional_id=record.key["transactional_id"],
            producer_id=value["producer_id"],
            previous_producer_id=value.get("previous_producer_id", NO_PRODUCER_ID),
            next_producer_id=value.get("next_producer_id", NO_PRODUCER_ID),
            producer_epoch=value["producer_epoch"],
            next_producer_epoch=value.get("next_producer_epoch", NO_PRODUCER_EPOCH),
            transaction_timeout_ms=value["transaction_timeout_ms"],
            state=TransactionState(value["transaction_status"]),
            topic_partitions=_topic_partitions(value),
            last_update_timestamp=value["transaction_last_update_timestamp_ms"],
            start_timestamp=value["transaction_start_timestamp_ms"],
            client_transaction_version=value.get("client_transaction_version", 0),
            last_producer_epoch=_last_producer_epoch(value),
        )


def decode_transaction_log(key: bytes | None, value: bytes | None) -> LogRecord:
    """Decode a record of ``__transaction_state``; never raises, see ``LogRecord.error``."""
    record = decode_coordinator_record(TYPES, key, value)
    strange = _strange(record.value) if record.value is not None and record.error is None else None
    return record if strange is None else replace(record, error=strange, raw_value=value)


def _strange(value: Mapping[str, Any]) -> str | None:
    """Return the reason why the coordinator would not load a state, or None."""
    status = value["transaction_status"]
    if not TransactionState.EMPTY <= status <= TransactionState.PREPARE_EPOCH_FENCE:
        return f"value: transaction_status {status} is not known"
    if value["transaction_partitions"] is None and status != TransactionState.EMPTY:
        return f"value: transaction_partitions is null in state {TransactionState(status).label}"
    return None


def _last_producer_epoch(value: Mapping[str, Any]) -> int:
    for tag, data in value.get(UNKNOWN_TAGGED_FIELDS, ()):
        if tag == LAST_PRODUCER_EPOCH_TAG and len(data) == 2:
            return int.from_bytes(data, "big", signed=True)
    return NO_PRODUCER_EPOCH


def _topic_partitions(value: Mapping[str, Any]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic["topic"], partition)
        for topic in value["transaction_partitions"] or ()
        for partition in topic["partition_ids"]
    )


TYPE: Final = "transaction_log"
LAST_PRODUCER_EPOCH_TAG: Final = 4  # the first number that neither 4.3.1 nor 4.4.0 uses

VALUE: Final = Message(TYPE, "0-1", flexible="1+").of(
    Field("producer_id", INT64),
    Field("previous_producer_id", INT64, "1+", tag=0, default=-1),
    Field("next_producer_id", INT64, "1+", tag=1, default=-1),
    Field("producer_epoch", INT16),
    Field("next_producer_epoch", INT16, "1+", tag=3, default=-1),
    Field("transaction_timeout_ms", INT32),
    Field("transaction_status", INT8),
    Field(
        "transaction_partitions",
        Array.of(Field("topic", STRING), Field("partition_ids", Array(INT32))),
        nullable="0+",
    ),
    Field("transaction_last_update_timestamp_ms", INT64),
    Field("transaction_start_timestamp_ms", INT64),
    Field("client_transaction_version", INT16, "1+", tag=2),
)

KEY: Final = Message("transaction_log_key", "0").of(Field("transactional_id", STRING))

KEY_TYPE: Final = 0

TYPES: Final = {KEY_TYPE: CoordinatorRecord(KEY, VALUE)}
