"""The contents of record batches: headers, codecs, records, control records, predicates."""

from __future__ import annotations

from txnkafka.record.compression import CompressionType, Decompressor
from txnkafka.record.control import (
    ControlRecordType,
    EndTransactionMarker,
    parse_control_key,
    parse_end_txn_marker,
)

__all__ = [
    "CompressionType",
    "ControlRecordType",
    "Decompressor",
    "EndTransactionMarker",
    "parse_control_key",
    "parse_end_txn_marker",
]
