"""Selects the partitions to read, and their offset ranges.

Like Spark's Kafka source this is strict: a missing topic, offsets for some partitions only, or an offset
outside of the log are errors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import replace

from txnkafka.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txnkafka.logdir import LogDir, PartitionView, ReadRequest
from txnkafka.logdir.names import what_there_is, without_internal
from txnkafka.logdir.requested import end_of, located
from txnkafka.model import TopicPartition
from txnkafka.record.predicate import bind, bounds_of
from txnkafka.spark.offsets import EARLIEST, LATEST, STARTS
from txnkafka.spark.options import ReadOptions, Timestamps

INTERNAL_TOPICS = {"__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state"}
NOT_OF_A_NAME = re.compile(r"[^\w.-]")  # a character such as the * of a pattern
LOG = logging.getLogger("txnkafka.spark")


def chosen_partitions(log_dir: LogDir, options: ReadOptions) -> list[TopicPartition]:
    """Return the partitions that the options and ``where`` select. Raises UnknownTopicOrPartitionError, which
    lists what exists, and ValueError for offsets that do not name exactly these partitions."""
    if options.assigned is not None:
        for name in options.assigned:
            log_dir.partition(*name)  # raises when it does not exist
    named = named_partitions(log_dir.topic_partitions, options, ", ".join(log_dir.paths))
    check_bounds(named, options)
    return selected(named, options)


def named_partitions(
    there: Iterable[TopicPartition],
    options: ReadOptions,
    place: str,
    *,
    may_be_none: bool = False,
    may_be_gone: bool = False,
) -> list[TopicPartition]:
    """Return the partitions of ``there`` that the options name, sorted; ``place`` is where they were looked
    for. Raises UnknownTopicOrPartitionError, unless ``may_be_gone``, for a topic or an assigned partition
    that does not exist, and unless ``may_be_none``, if a pattern matches no topic."""
    there = sorted(there)
    if options.assigned is not None:
        absent = sorted(set(options.assigned).difference(there))
        if absent and not may_be_gone:
            raise UnknownTopicOrPartitionError(f"no {', '.join(map(str, absent))} in {place}")
        return [name for name in options.assigned if name not in absent]
    names = list(dict.fromkeys(each.topic for each in there))
    topics = set(_chosen_topics(names, options))
    missing = sorted(topics.difference(names))
    if (missing and not may_be_gone) or not (topics or may_be_none):
        what = f"no topic {', '.join(missing)}" if missing else "no topic"
        if options.topic_pattern is not None:
            what += f" that matches {options.topic_pattern!r}"
        hint = what_there_is("topics", names, missing[0] if missing else "")
        if any(NOT_OF_A_NAME.search(name) for name in missing):
            hint += "; topic_pattern (subscribePattern) takes a regular expression"
        raise UnknownTopicOrPartitionError(f"{what} in {place}; {hint}")
    named = [name for name in there if name.topic in topics]
    chosen = options.topics is not None or options.topic_pattern is not None
    return named if chosen else without_internal(named)


def check_bounds(named: Iterable[TopicPartition], options: ReadOptions) -> None:
    """Raise ValueError for offsets and timestamps that do not name exactly these partitions."""
    for bound in ("starting", "ending"):
        _check_complete(bound, getattr(options, f"{bound}_offsets"), set(named))
        _check_complete(bound, getattr(options, f"{bound}_timestamp"), set(named))


def selected(named: Iterable[TopicPartition], options: ReadOptions) -> list[TopicPartition]:
    """Return the partitions of which ``where`` may select records."""
    return [name for name in named if not bounds_of(bind(options.where, name)).empty]


def _chosen_topics(there: list[str], options: ReadOptions) -> Iterable[str]:
    if options.topics is not None:
        return options.topics
    if options.topic_pattern is not None:
        # like Spark's source: anywhere in the name, never an internal topic
        found = (topic for topic in there if re.search(options.topic_pattern, topic))
        return [topic for topic in found if topic not in INTERNAL_TOPICS]
    return there


def _check_complete(bound: str, given: object, wanted: set[TopicPartition]) -> None:
    if not isinstance(given, dict):
        return
    special = "-2 is the earliest, -1 the latest offset"
    if lacking := wanted - given.keys():
        raise ValueError(f"{bound} offsets lack {', '.join(map(str, sorted(lacking)))}; {special}")
    if needless := given.keys() - wanted:
        raise ValueError(f"{bound} offsets name unread partitions: {', '.join(map(str, sorted(needless)))}")


def partition_request(view: PartitionView, options: ReadOptions) -> ReadRequest:
    """Return the request for a partition. Raises OffsetOutOfRangeError."""
    return replace(options.request, start_offset=_start(view, options), end_offset=_end(view, options))


def starting_offset(view: PartitionView, options: ReadOptions) -> int:
    """Return the offset where the options begin to read a partition. Raises OffsetOutOfRangeError."""
    start = _start(view, options)
    return view.log_start_offset if start is None else start


def _start(view: PartitionView, options: ReadOptions) -> int | None:
    timestamp = _timestamp_of(options.starting_timestamp, view)
    if timestamp is not None:
        by_offsets = located(view, _by_time(options, start_time=timestamp))
        return _without_match(view, timestamp, options) if by_offsets is None else by_offsets.start_offset
    given = options.starting_offsets
    offset = STARTS[given] if isinstance(given, str) else given[view.topic_partition]
    if offset == LATEST:  # of a stream
        return end_of(view, options.request)
    return None if offset == EARLIEST else _in_range(view, offset, options)


def _by_time(options: ReadOptions, **time: int) -> ReadRequest:
    """Return the request that finds the offset of a time, skipping damage if the options do."""
    on_corrupt = options.request.on_corrupt if options.fail_on_data_loss else "skip"
    return replace(options.request, on_corrupt=on_corrupt, **time)  # type: ignore[arg-type]  # start or end


def _without_match(view: PartitionView, timestamp: int, options: ReadOptions) -> int:
    if options.starting_offsets_by_timestamp_strategy == "latest":
        return end_of(view, options.request)
    raise no_record_since(view.topic_partition, timestamp)


def no_record_since(name: TopicPartition, timestamp: int) -> OffsetOutOfRangeError:
    """Return the error for a starting time after the last record."""
    return OffsetOutOfRangeError(
        f"{name} has no record at or after timestamp {timestamp} to start at; "
        "startingOffsetsByTimestampStrategy=latest would read nothing from it, "
        f'where="timestamp >= {timestamp}" selects by the timestamp of each record'
    )


def _timestamp_of(given: Timestamps, view: PartitionView) -> int | None:
    return given[view.topic_partition] if isinstance(given, dict) else given


def _end(view: PartitionView, options: ReadOptions) -> int | None:
    timestamp = _timestamp_of(options.ending_timestamp, view)
    if timestamp is not None:
        by_offsets = located(view, _by_time(options, end_time=timestamp))
        return None if by_offsets is None else by_offsets.end_offset
    if isinstance(options.ending_offsets, str):
        return None
    offset = options.ending_offsets[view.topic_partition]
    return None if offset == LATEST else _in_range(view, offset, options)


def _in_range(view: PartitionView, offset: int, options: ReadOptions) -> int:
    return in_range(view.topic_partition, offset, (view.log_start_offset, view.log_end_offset), options)


def in_range(name: TopicPartition, offset: int, log: tuple[int, int], options: ReadOptions) -> int:
    """Return an offset in the log, which has the offsets from the first to the second number. An offset
    outside means lost data: it is refused, or moved to the nearest offset in the log. Raises
    OffsetOutOfRangeError."""
    first, end = log
    if first <= offset <= end:
        return offset
    text = f"offset {offset} of {name} is not in the log, which has {first} to {end}"
    if options.fail_on_data_loss:
        raise OffsetOutOfRangeError(f"{text}; with failOnDataLoss=false the offsets that exist would be read")
    LOG.warning("%s; reading the offsets that exist", text)
    return max(first, min(offset, end))
