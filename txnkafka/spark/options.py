"""The keywords that select records, and the options that they are parsed to.

``ReadKeywords`` are the options of Spark's Kafka source in snake_case; ``ReadOptions`` is their parsed form,
and the only place with defaults. Nothing is opened here. An unknown keyword is refused: a misspelt
``starting_offsets`` must not read everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from txnkafka.logdir.directory_files import ReadMethod
from txnkafka.logdir.read_request import End, ReadRequest
from txnkafka.model import IsolationLevel, IsolationLevelName, TopicPartition, check_milliseconds
from txnkafka.record.predicate import Predicate
from txnkafka.record.predicate_text import parse_predicate
from txnkafka.shown import nearest
from txnkafka.spark.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    parse_assignment,
    parse_offsets,
    parse_timestamps,
)

HIGH_WATERMARK: Final = "high-watermark"
# the words for the offsets of each bound, and the special offset that is invalid there
_WORDS: Final[dict[str, tuple[tuple[str, ...], int | None]]] = {
    "starting": (("earliest",), LATEST),
    "ending": (("latest", HIGH_WATERMARK), EARLIEST),
    "stream": (("earliest", "latest"), None),
}


class ReadKeywords(TypedDict, total=False):
    """The keywords that select records.

    ``topic`` (one or several), ``topic_pattern`` (a regular expression to be found in the name) and
    ``assign`` ({topic: partitions}) exclude each other; without any of them all topics except Kafka's
    internal ones are read. Offsets are ``earliest``, ``latest``, ``high-watermark`` (ending only) or {topic:
    {partition: offset}}, which must then name every partition; timestamps are milliseconds. As in Spark a
    timestamp for all partitions takes precedence over timestamps for each ({topic: {partition:
    milliseconds}}), and these over offsets. ``where`` is a predicate such as ``"offset >= 10 and
    length(value) > 3"``. ``storage_options`` are passed to fsspec when the path is an address such as
    ``s3://bucket/kafka-logs``."""

    topic: str | Iterable[str]
    topic_pattern: str
    assign: Mapping[str, Iterable[int]] | str
    isolation_level: IsolationLevelName | IsolationLevel
    starting_offsets: Offsets
    ending_offsets: Offsets
    starting_timestamp: int
    ending_timestamp: int
    starting_offsets_by_timestamp: Offsets
    ending_offsets_by_timestamp: Offsets
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"]
    where: str
    fail_on_data_loss: bool
    min_partitions: int
    max_bytes_per_partition: int
    max_records_per_partition: int
    io: ReadMethod
    storage_options: Mapping[str, Any]


Timestamps = int | dict[TopicPartition, int] | None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The parsed form of ReadKeywords. None means not given. ``request`` selects the records of each chosen
    partition; its bounds are computed from offsets and timestamps, partition by partition."""

    topics: tuple[str, ...] | None = None
    topic_pattern: str | None = None
    assigned: tuple[TopicPartition, ...] | None = None
    request: ReadRequest = field(default_factory=ReadRequest)
    starting_offsets: str | dict[TopicPartition, int] = "earliest"
    ending_offsets: str | dict[TopicPartition, int] = "latest"
    starting_timestamp: Timestamps = None
    ending_timestamp: Timestamps = None
    starting_offsets_by_timestamp_strategy: str = "error"
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_bytes_per_partition: int = 128 << 20
    max_records_per_partition: int | None = None
    io: ReadMethod = "auto"
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)  # may contain secrets

    def __post_init__(self) -> None:
        if sum(choice is not None for choice in (self.topics, self.topic_pattern, self.assigned)) > 1:
            raise ValueError("topics (subscribe), a pattern (subscribePattern) and assign exclude each other")
        if self.topics == () or self.assigned == ():
            raise ValueError("the list of topics is empty")
        if self.starting_offsets_by_timestamp_strategy not in ("error", "latest"):
            given = self.starting_offsets_by_timestamp_strategy
            raise ValueError(f"startingOffsetsByTimestampStrategy must be error or latest, not {given!r}")
        if self.min_partitions is not None and self.min_partitions < 1:
            raise ValueError(f"minPartitions must be at least 1, not {self.min_partitions}")
        if self.max_bytes_per_partition < 1:
            raise ValueError(f"maxBytesPerPartition must be at least 1, not {self.max_bytes_per_partition}")
        if self.max_records_per_partition is not None and self.max_records_per_partition < 1:
            raise ValueError(
                f"maxRecordsPerPartition must be at least 1, not {self.max_records_per_partition}"
            )
        if self.io not in get_args(ReadMethod):
            raise ValueError(f"io must be auto, mmap or pread, not {self.io!r}")

    @property
    def where(self) -> Predicate:
        """The predicate that selects records."""
        return self.request.where


def read_options(**keywords: Unpack[ReadKeywords]) -> ReadOptions:
    """Parse keywords. Raises ValueError for an invalid value, TypeError for an unknown keyword."""
    return _parsed(keywords, streaming=False)


def stream_options(**keywords: Unpack[ReadKeywords]) -> ReadOptions:
    """Parse the keywords of a stream. It may start at the latest offset, and does without an option, and has
    no end. Raises like ``read_options``."""
    for keyword in keywords:
        if keyword.startswith("ending_"):
            raise ValueError(f"a stream has no end: leave {keyword} out, or use spark.read")
    found = _parsed(keywords, streaming=True)
    return found if "starting_offsets" in keywords else replace(found, starting_offsets="latest")


def _parsed(keywords: ReadKeywords, *, streaming: bool) -> ReadOptions:
    names = list(ReadKeywords.__annotations__)
    for name in keywords:
        if name not in names:
            raise TypeError(f"unknown keyword {name}: {nearest(name, names)}")
    found: dict[str, object] = dict(keywords)
    if "topic" in keywords:
        topic = keywords["topic"]
        del found["topic"]
        found["topics"] = tuple(dict.fromkeys([topic] if isinstance(topic, str) else topic))
    if "assign" in keywords:
        found["assigned"] = parse_assignment(keywords["assign"])
        del found["assign"]
    if "topic_pattern" in keywords:
        _check_pattern(keywords["topic_pattern"])
    for bound in ("starting", "ending"):
        _convert_bound(bound, found, streaming=streaming)
    found.pop("isolation_level", None)
    level = IsolationLevel.of(keywords.get("isolation_level", IsolationLevel.READ_COMMITTED))
    found.pop("where", None)
    where = parse_predicate(keywords.get("where", "true"))
    found["request"] = ReadRequest(isolation_level=level, up_to=_up_to(found), where=where)
    return ReadOptions(**found)  # type: ignore[arg-type]


def leaving_damage_out(options: ReadOptions) -> ReadOptions:
    """Return the options for a reader that leaves damaged batches out, also in its search for timestamps."""
    return replace(options, request=replace(options.request, on_corrupt="skip"))


def _up_to(found: dict[str, Any]) -> End:
    """Return ``up_to``; a timestamp takes precedence over offsets, also over the high watermark."""
    if found.get("ending_offsets") != HIGH_WATERMARK:
        return "log-end"
    found["ending_offsets"] = "latest"
    return "log-end" if found.get("ending_timestamp") is not None else HIGH_WATERMARK


def _convert_bound(bound: str, found: dict[str, Any], *, streaming: bool) -> None:
    """Parse the offsets of one bound, and the timestamps that take precedence over them."""
    offsets, by_timestamp, timestamp = (
        f"{bound}_{what}" for what in ("offsets", "offsets_by_timestamp", "timestamp")
    )
    words, refused = _WORDS["stream" if streaming else bound]
    if offsets in found:
        found[offsets] = parse_offsets(bound, found[offsets], words, refused=refused)
    if by_timestamp in found:
        timestamps = parse_timestamps(bound, found.pop(by_timestamp))
        found.setdefault(timestamp, timestamps)
    elif isinstance(found.get(timestamp, 0), bool) or not isinstance(found.get(timestamp, 0), int):
        raise ValueError(f"a {bound} timestamp is a whole number of milliseconds, not {found[timestamp]!r}")
    else:
        check_milliseconds(**{f"{bound}Timestamp": found.get(timestamp)})


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
