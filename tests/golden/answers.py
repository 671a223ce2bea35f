"""Converts our answers to the format in which the cases have the broker's and the consumer's."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from txnkafka import CorruptRecordError, TimestampType
from txnkafka.logdir import PartitionView
from txnkafka.model import ProducerStateEntry
from txnkafka.record.batch import Record

__all__ = ["producer_row", "read", "record_row"]

Json = Any


def _base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode("ascii")


def record_row(record: Record) -> dict[str, Json]:
    """Return a record as in the lines of the expected files."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": TimestampType(record.timestamp_type).label,
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [[name, _base64(value)] for name, value in record.headers],
        "leader_epoch": record.leader_epoch,
    }


def read(
    view: PartitionView, isolation_level: str, on_corrupt: str = "stop", **bounds: int
) -> tuple[list[dict[str, Json]], CorruptRecordError | None]:
    """Return all records before the first damaged batch, and the error raised there."""
    found: list[dict[str, Json]] = []
    records = view.records(isolation_level=isolation_level, on_corrupt=on_corrupt, **bounds)
    try:
        found.extend(map(record_row, records))
    except CorruptRecordError as error:
        return found, error
    return found, None


def producer_row(entry: ProducerStateEntry) -> dict[str, Json]:
    """Return a producer as in DescribeProducers: missing values are null, but a missing sequence is -1."""
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp": entry.last_timestamp,
        "coordinator_epoch": None if entry.coordinator_epoch < 0 else entry.coordinator_epoch,
        "current_txn_start_offset": entry.current_txn_first_offset if entry.has_open_transaction else None,
    }
