"""Rows of Spark in the form of the golden cases' expected lines. Workers import it, so it loads little."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from txnkafka import TimestampType, TopicPartition

if TYPE_CHECKING:
    from tests.golden.cases import Case

__all__ = ["ALL_COLUMNS", "Json", "expected_lines", "line"]

Json = Any
ALL_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def expected_lines(case: Case, partition: TopicPartition, level: str) -> list[Json]:
    """What the consumer got; Spark's Kafka source has no column for the leader epoch."""
    return without_leader_epoch(case.expected_records(partition, level))


def without_leader_epoch(records: list[Json]) -> list[Json]:
    return [
        {name: value for name, value in record.items() if name != "leader_epoch"} for record in records
    ]  # fmt: skip


def line(row: Mapping[str, Any], timestamp: int) -> Json:
    """A row with all columns, and its timestamp in milliseconds."""
    return {
        "offset": row["offset"],
        "timestamp": timestamp,
        "timestamp_type": TimestampType(row["timestampType"]).label,
        "key": _base64(row["key"]),
        "value": _base64(row["value"]),
        "headers": [[each["key"], _base64(each["value"])] for each in row["headers"] or ()],
    }


def _base64(content: bytes | bytearray | None) -> str | None:
    return None if content is None else b64encode(content).decode("ascii")
