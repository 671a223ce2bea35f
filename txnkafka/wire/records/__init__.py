"""The records of Kafka's own logs: transaction state, consumer offsets, cluster metadata, control records."""

from __future__ import annotations

from txnkafka.wire.records.control_body import decode_control_body, encode_leader_change, encode_voter
from txnkafka.wire.records.group_log import (
    GroupOffset,
    decode_group_log,
    encode_group_log,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from txnkafka.wire.records.log_record import UNKNOWN_TYPE, LogRecord
from txnkafka.wire.records.metadata import decode_metadata, encode_metadata
from txnkafka.wire.records.transaction_bytes import encode_transaction_key, encode_transaction_value
from txnkafka.wire.records.transaction_log import (
    TransactionMetadata,
    TransactionState,
    decode_transaction_log,
)

__all__ = [
    "UNKNOWN_TYPE",
    "GroupOffset",
    "LogRecord",
    "TransactionMetadata",
    "TransactionState",
    "decode_control_body",
    "decode_group_log",
    "decode_metadata",
    "decode_transaction_log",
    "encode_group_log",
    "encode_leader_change",
    "encode_metadata",
    "encode_offset_commit_key",
    "encode_offset_commit_value",
    "encode_transaction_key",
    "encode_transaction_value",
    "encode_voter",
]
