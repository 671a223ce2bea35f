"""Plans a read over a broker: each task is a range of offsets of one partition.

Like Spark's Kafka source this makes one task for each partition, and more of large ones for ``minPartitions``
and ``maxRecordsPerPartition``; the number of bytes is unknown. Source: ``KafkaOffsetRangeCalculator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from txnkafka.model import TopicPartition
from txnkafka.record.predicate import bind, bounds_of
from txnkafka.spark.broker.source_client import SourceClient
from txnkafka.spark.log_bounds import LogBounds, OffsetRange
from txnkafka.spark.offsets import EARLIEST, LATEST, STARTS
from txnkafka.spark.selection import check_bounds, in_range, named_partitions, no_record_since, selected

if TYPE_CHECKING:
    from txnkafka.spark.options import ReadOptions

NOT_FOUND = -1


def broker_partitions(
    client: SourceClient, options: ReadOptions, *, may_be_none: bool = False, may_be_gone: bool = False
) -> list[TopicPartition]:
    """Return the partitions that the options name. Raises UnknownTopicOrPartitionError as
    ``named_partitions`` does."""
    topics: Iterable[str] | None = options.topics
    if options.assigned is not None:
        topics = sorted({each.topic for each in options.assigned})
    there = client.partitions(topics)
    place = f"the cluster of {client.config.bootstrap_servers}"
    return named_partitions(there, options, place, may_be_none=may_be_none, may_be_gone=may_be_gone)


def plan_broker_tasks(settings: Mapping[str, str], options: ReadOptions) -> list[OffsetRange]:
    """Return the tasks of a batch, partition after partition, in offset order. Raises
    UnknownTopicOrPartitionError, OffsetOutOfRangeError, ValueError and the errors of the broker."""
    with SourceClient(settings) as client:
        named = broker_partitions(client, options)
        check_bounds(named, options)
        names = selected(named, options)
        bounds = client.bounds(names, committed=options.request.read_committed)
        starts = starting_offsets(client, bounds, options)
        ends = _ending_offsets(client, bounds, options)
    ranges = (OffsetRange(name, starts[name], ends[name]) for name in names)
    return divided_ranges(clipped(ranges, options), options)


def starting_offsets(
    client: SourceClient, bounds: Mapping[TopicPartition, LogBounds], options: ReadOptions
) -> dict[TopicPartition, int]:
    """Return the offset where the options begin to read each partition. Raises OffsetOutOfRangeError."""
    if options.starting_timestamp is not None:
        found = _at_times(client, bounds, options.starting_timestamp, options)
        for name in [name for name, offset in found.items() if offset == NOT_FOUND]:
            if options.starting_offsets_by_timestamp_strategy != "latest":
                raise no_record_since(name, _of(options.starting_timestamp, name))
            found[name] = bounds[name].end
        return found
    given = options.starting_offsets
    offsets = {name: STARTS[given] if isinstance(given, str) else given[name] for name in bounds}
    return {name: _placed(name, offset, bounds[name], options) for name, offset in offsets.items()}


def _ending_offsets(
    client: SourceClient, bounds: Mapping[TopicPartition, LogBounds], options: ReadOptions
) -> dict[TopicPartition, int]:
    if options.ending_timestamp is not None:
        found = _at_times(client, bounds, options.ending_timestamp, options)
        return {
            name: here.end if found[name] == NOT_FOUND else min(found[name], here.end)
            for name, here in bounds.items()
        }
    given = options.ending_offsets
    offsets = {name: LATEST if isinstance(given, str) else given[name] for name in bounds}
    return {
        name: min(_placed(name, offset, bounds[name], options), bounds[name].end)
        for name, offset in offsets.items()
    }


def _placed(name: TopicPartition, offset: int, here: LogBounds, options: ReadOptions) -> int:
    if offset == EARLIEST:
        return here.start
    return here.end if offset == LATEST else in_range(name, offset, (here.start, here.log_end), options)


def _at_times(
    client: SourceClient,
    bounds: Iterable[TopicPartition],
    times: int | Mapping[TopicPartition, int],
    options: ReadOptions,
) -> dict[TopicPartition, int]:
    wanted = {name: _of(times, name) for name in bounds}
    return client.offsets(wanted, committed=options.request.read_committed)


def _of(times: int | Mapping[TopicPartition, int], name: TopicPartition) -> int:
    return times if isinstance(times, int) else times[name]


def clipped(ranges: Iterable[OffsetRange], options: ReadOptions) -> Iterator[OffsetRange]:
    """Yield the parts of ranges of which ``where`` may select records, without empty ones."""
    for name, start, end in ranges:
        limits = bounds_of(bind(options.where, name))
        low, high = max(start, limits.start_offset), min(end, limits.end_offset)
        if low < high:
            yield OffsetRange(name, low, high)


def divided_ranges(ranges: Iterable[OffsetRange], options: ReadOptions) -> list[OffsetRange]:
    """Divide ranges into about ``minPartitions`` tasks, of at most ``maxRecordsPerPartition`` offsets."""
    found = list(ranges)
    total = sum(part.end - part.start for part in found)
    wanted, most = options.min_partitions or 0, options.max_records_per_partition or total or 1
    tasks: list[OffsetRange] = []
    for part in found:
        size = part.end - part.start
        count = max(1, round(wanted * size / total) if wanted > len(found) else 1, -(-size // most))
        tasks += _pieces(part, min(count, size))
    return tasks


def _pieces(part: OffsetRange, count: int) -> Sequence[OffsetRange]:
    size = part.end - part.start
    cuts = [part.start + size * i // count for i in range(count + 1)]
    return [OffsetRange(part.topic_partition, cuts[i], cuts[i + 1]) for i in range(count)]
