"""The records of ``__transaction_state``, obvious: a dictionary by the tables, and the generic writer."""

from __future__ import annotations

from typing import Any

from txnkafka.model import NO_PRODUCER_EPOCH
from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS
from txnkafka.wire.records import TransactionMetadata, TransactionState
from txnkafka.wire.records.log_record import encode_key, encode_value
from txnkafka.wire.records.transaction_log import KEY, KEY_TYPE, LAST_PRODUCER_EPOCH_TAG, VALUE

__all__ = ["key_of", "value_of"]


def key_of(transactional_id: str) -> bytes:
    """Return the key. Raises SchemaError."""
    return encode_key(KEY, KEY_TYPE, {"transactional_id": transactional_id})


def value_of(metadata: TransactionMetadata, version: int) -> bytes:
    """Return the value. Raises SchemaError."""
    fields: dict[str, Any] = {
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
        "transaction_timeout_ms": metadata.transaction_timeout_ms,
        "transaction_status": metadata.state,
        "transaction_partitions": None if metadata.state == TransactionState.EMPTY else _by_topic(metadata),
        "transaction_last_update_timestamp_ms": metadata.last_update_timestamp,
        "transaction_start_timestamp_ms": metadata.start_timestamp,
    }
    if version > 0 or metadata.client_transaction_version:
        fields["client_transaction_version"] = metadata.client_transaction_version
    if version > 0:
        fields["previous_producer_id"] = metadata.previous_producer_id
        fields["next_producer_id"] = metadata.next_producer_id
        fields["next_producer_epoch"] = metadata.next_producer_epoch
        if metadata.last_producer_epoch != NO_PRODUCER_EPOCH:
            last = metadata.last_producer_epoch.to_bytes(2, "big", signed=True)
            fields[UNKNOWN_TAGGED_FIELDS] = [(LAST_PRODUCER_EPOCH_TAG, last)]
    return encode_value(VALUE, version, fields)


def _by_topic(metadata: TransactionMetadata) -> list[dict[str, Any]]:
    partitions: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.topic_partitions):
        partitions.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partition_ids": numbers} for topic, numbers in partitions.items()]
