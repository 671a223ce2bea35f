"""Parses offsets and partitions in the syntax of Spark's Kafka source: words, or JSON such as ``{"orders":
{"0": 23, "1": -2}}``, in which -2 is the earliest and -1 the latest offset.

Python programs may pass mappings instead. Source: JsonUtils of Spark's Kafka source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from txnkafka.model import TopicPartition, check_milliseconds

EARLIEST, LATEST = -2, -1
STARTS = {"earliest": EARLIEST, "latest": LATEST}
MAX_PARTITION = (1 << 31) - 1

Offsets = str | Mapping[str, Mapping[int, int]] | Mapping[str, Mapping[str, int]]


def parse_offsets(
    bound: str, given: Offsets, words: tuple[str, ...], *, refused: int | None
) -> str | dict[TopicPartition, int]:
    """Return one of ``words``, or the offset of each partition. ``refused`` is the special offset that is
    invalid at this bound of a batch; a stream has none. Raises ValueError."""
    example = '{"orders": {"0": 23}}'
    if isinstance(given, str) and given.strip().lower() in words:
        return given.strip().lower()
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        raise ValueError(f"{bound} offsets must be {' or '.join(words)} or like {example}, not {given!r}")
    found = {key: _offset(offset, refused) for key, offset in _each_partition(given)}
    if not found:
        raise ValueError(f"{bound} offsets name no partition: {given!r}")
    return found


def parse_timestamps(bound: str, given: Offsets) -> dict[TopicPartition, int]:
    """Return the timestamp (milliseconds) of each partition. Raises ValueError."""
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        example = '{"orders": {"0": 1700000000000}}'
        raise ValueError(f"{bound} offsets by timestamp must be like {example}, not {given!r}")
    found = {key: _timestamp(key, timestamp) for key, timestamp in _each_partition(given)}
    if not found:
        raise ValueError(f"{bound} offsets by timestamp name no partition: {given!r}")
    return found


def _each_partition(given: Offsets) -> Iterator[tuple[TopicPartition, object]]:
    for topic, partitions in _json_object(given).items():
        for partition, value in _inner_object(topic, partitions).items():
            yield _topic_partition(topic, partition), value


def parse_assignment(given: Mapping[str, Iterable[int]] | str) -> tuple[TopicPartition, ...]:
    """Return the partitions of ``{"orders": [0, 1]}``, sorted. Raises ValueError."""
    found = set()
    for topic, partitions in _json_object(given).items():
        if isinstance(partitions, str | Mapping) or not isinstance(partitions, Iterable):
            raise ValueError(f'assign must be like {{"orders": [0, 1]}}, not {given!r}')
        found |= {_topic_partition(topic, partition) for partition in partitions}
    return tuple(sorted(found))


def _json_object(given: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise ValueError(f"{given!r} is not JSON: {error}") from None
    if not isinstance(given, Mapping):
        raise ValueError(f"a JSON object with topics is needed, not {given!r}")
    return given


def _inner_object(topic: str, partitions: object) -> Mapping[Any, Any]:
    if not isinstance(partitions, Mapping):
        raise ValueError(f'{topic} needs an offset for each partition, {{"0": 23}}, not {partitions!r}')
    return partitions


def _topic_partition(topic: str, partition: object) -> TopicPartition:
    number = int(partition) if isinstance(partition, str) and partition.isdecimal() else partition
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_PARTITION:
        raise ValueError(f"{partition!r} of {topic} is not a partition number")
    return TopicPartition(topic, number)


def _timestamp(topic_partition: TopicPartition, timestamp: object) -> int:
    if isinstance(timestamp, bool) or not isinstance(timestamp, int) or timestamp < 0:
        raise ValueError(f"{timestamp!r} for {topic_partition} is not a time in milliseconds")
    check_milliseconds(**{f"the timestamp of {topic_partition}": timestamp})
    return timestamp


def _offset(offset: object, refused: int | None) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < EARLIEST:
        raise ValueError(f"{offset!r} is not an offset; -2 is the earliest, -1 the latest")
    if offset == refused:
        what = "start at the latest" if refused == LATEST else "end at the earliest"
        raise ValueError(f"a batch that would {what} offset ({refused}) reads nothing")
    return offset
