"""Compares the offsets of a stream with the logs as they are now: where to continue, and which offsets were
lost since.

Source: ``KafkaMicroBatchStream``, ``KafkaOffsetReaderAdmin`` of Spark; compaction is not seen there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from txnkafka.model import TopicPartition
from txnkafka.shown import offset_range
from txnkafka.spark.log_bounds import LogBounds, OffsetRange
from txnkafka.spark.stream.stream_offsets import StreamOffsets


class Begins(NamedTuple):
    """The next offset of each existing partition, and the losses before it, as texts."""

    offsets: dict[TopicPartition, int]
    losses: list[str]


def begins_of(start: StreamOffsets, bounds: Mapping[TopicPartition, LogBounds]) -> Begins:
    """Return the first offset to read in each partition. A new partition begins at offset 0."""
    offsets, losses = {}, []
    for name, offset in start.offsets.items():
        if name not in bounds:
            losses.append(f"{name} is gone; it was read up to offset {offset}")
    for name, here in bounds.items():
        offset = start.offsets.get(name, 0)
        losses += _losses(name, offset, here, start)
        offsets[name] = here.end if offset > here.log_end else max(offset, here.start)
    return Begins(offsets, losses)


def _losses(name: TopicPartition, offset: int, here: LogBounds, start: StreamOffsets) -> Iterator[str]:
    if offset < here.start:
        what = "" if name in start.offsets else " of the new partition"
        yield f"{name}: {offset_range(offset, here.start - 1)}{what} deleted before the stream read them"
    if offset > here.log_end:
        yield f"{name} now ends at offset {here.log_end}; it was read up to {offset}"
    if name in start.offsets and here.cleaned_to > max(offset, start.cleaned.get(name, 0)):
        yield (
            f"{name} was compacted up to offset {here.cleaned_to} after its offsets from {offset} on were to "
            "be read, so records may be missing"
        )


def ranges_of(
    start: StreamOffsets, end: StreamOffsets, bounds: Mapping[TopicPartition, LogBounds]
) -> tuple[list[OffsetRange], list[str]]:
    """Return the ranges of a batch that are not empty, and the losses in them."""
    if end.first is not None:
        start = start._replace(offsets=end.first)
    start = start._replace(cleaned=end.cleaned)
    begins = begins_of(start, {name: here for name, here in bounds.items() if name in end.offsets})
    losses, found = begins.losses, []
    for name, stop in sorted(end.offsets.items()):
        here = bounds.get(name)
        if here is None:
            if name not in start.offsets:
                losses.append(f"{name} is gone before it was read")
            continue
        begin = begins.offsets[name]
        if stop > here.log_end and begin < stop:
            losses.append(f"{name} now ends at offset {here.log_end}; it was to be read up to {stop}")
        elif stop > here.end and begin < stop:
            losses.append(f"{name} can now be read up to offset {here.end}; it was to be read up to {stop}")
        stop = min(stop, here.end)
        if begin < stop:
            found.append(OffsetRange(name, begin, stop))
    return found, losses
