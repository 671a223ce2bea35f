"""Replaces the bytes of keys and values by decoded content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from txnkafka.errors import DecodeError
from txnkafka.model import TopicPartition
from txnkafka.record.batch import Record

Decode = Callable[[bytes], Any]
"""Returns the content of a key or value; raises DecodeError."""


def decoded_records(
    records: Iterable[Record], topic_partition: TopicPartition, key: Decode | None, value: Decode | None
) -> Iterator[Record]:
    """Yield the records with decoded keys and values; null stays None. Raises DecodeError with the record's
    place."""
    for record in records:
        changes = {}
        if key is not None and record.key is not None:
            changes["key"] = decoded(key, record.key, (topic_partition, record.offset, "key"))
        if value is not None and record.value is not None:
            changes["value"] = decoded(value, record.value, (topic_partition, record.offset, "value"))
        yield record._replace(**changes)


def decoded(decode: Decode, content: bytes, place: tuple[TopicPartition, int, str]) -> Any:
    """Decode one key or value; an error names its place."""
    try:
        return decode(content)
    except DecodeError as error:
        (error.topic, error.partition), error.offset, error.field = place
        raise
