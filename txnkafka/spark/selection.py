"""Which partitions are read, and from which offset to which.

Like Spark's Kafka source this is strict: a topic that is not there, offsets for some partitions only, or an
offset that is not in the log are errors, not guesses.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import NamedTuple

from txnkafka.errors import LogDirError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txnkafka.logdir import LogDir, PartitionView
from txnkafka.model import TopicPartition
from txnkafka.spark.offsets import EARLIEST, LATEST
from txnkafka.spark.options import ReadOptions

__all__ = ["PartitionRange", "chosen_partitions", "local_path", "partition_ranges"]

INTERNAL_TOPICS = {"__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state"}
LOG = logging.getLogger("txnkafka.spark")


class PartitionRange(NamedTuple):
    """Offsets [start, end) of a partition; None is where it begins, or ends for its reader."""

    view: PartitionView
    start: int | None
    end: int | None

    def log_bytes(self) -> int:
        """About how many bytes of log lie in it: those of the segments that it touches."""
        segments = self.view.segments
        start = self.view.log_start_offset if self.start is None else self.start
        end = self.view.log_end_offset if self.end is None else self.end
        following = [segment.base_offset for segment in segments[1:]] + [self.view.log_end_offset]
        return sum(
            segment.size
            for segment, next_offset in zip(segments, following, strict=True)
            if next_offset > start and segment.base_offset < end
        )


def local_path(path: str) -> str:
    """The path of a ``file:`` address, or the path itself; other addresses are refused."""
    address = re.match(r"([A-Za-z][A-Za-z\d+.-]+):(//[^/]*)?(?=/)", path)
    if address is None:
        return path
    if address[1].lower() != "file" or address[2] not in (None, "//", "//localhost"):
        raise LogDirError(
            f"{path}: only files that every executor opens under the same path can be read; "
            "mount the storage, or copy the directory"
        )
    return path[address.end() :]


def chosen_partitions(log_dir: LogDir, options: ReadOptions) -> list[TopicPartition]:
    """The partitions that the options name. Raises UnknownTopicOrPartitionError that says what there is."""
    if options.assigned is not None:
        for each in options.assigned:
            log_dir.partition(*each)  # raises when it is not there
        return list(options.assigned)
    there = list(log_dir.topics)
    topics = set(_chosen_topics(there, options))
    missing = sorted(topics.difference(there))
    if missing or not topics:
        what = f"no topic {', '.join(missing)}" if missing else "no topic"
        if options.topic_pattern is not None:
            what += f" that matches {options.topic_pattern!r}"
        raise UnknownTopicOrPartitionError(f"{what} in {', '.join(log_dir.paths)}; there are {there}")
    return [each for each in log_dir.topic_partitions if each.topic in topics]


def _chosen_topics(there: list[str], options: ReadOptions) -> Iterable[str]:
    if options.topics is not None:
        return options.topics
    if options.topic_pattern is not None:
        # like Spark's source: anywhere in the name, and never a topic of Kafka's own
        found = (topic for topic in there if re.search(options.topic_pattern, topic))
        return [topic for topic in found if topic not in INTERNAL_TOPICS]
    return [topic for topic in there if not topic.startswith("__")] or there


def partition_ranges(views: list[PartitionView], options: ReadOptions) -> list[PartitionRange]:
    """What to read of each partition. Raises OffsetOutOfRangeError, and ValueError for offsets that do not
    name exactly these partitions."""
    wanted = {view.topic_partition for view in views}
    _check_complete("starting", options.starting_offsets, wanted)
    _check_complete("ending", options.ending_offsets, wanted)
    return [PartitionRange(view, _start(view, options), _end(view, options)) for view in views]


def _check_complete(
    bound: str, offsets: str | dict[TopicPartition, int], wanted: set[TopicPartition]
) -> None:
    if isinstance(offsets, str):
        return
    special = "-2 is the earliest, -1 the latest offset"
    if lacking := wanted - offsets.keys():
        raise ValueError(f"{bound} offsets lack {', '.join(map(str, sorted(lacking)))}; {special}")
    if needless := offsets.keys() - wanted:
        raise ValueError(f"{bound} offsets name what is not read: {', '.join(map(str, sorted(needless)))}")


def _start(view: PartitionView, options: ReadOptions) -> int | None:
    if options.starting_timestamp is not None:
        found = view.offset_for_timestamp(options.starting_timestamp, options.isolation_level)
        return view.log_end_offset if found is None else found.offset
    if isinstance(options.starting_offsets, str):
        return None
    offset = options.starting_offsets[view.topic_partition]
    return None if offset == EARLIEST else _in_range(view, offset, options)


def _end(view: PartitionView, options: ReadOptions) -> int | None:
    if options.ending_timestamp is not None:
        found = view.offset_for_timestamp(options.ending_timestamp, options.isolation_level)
        return None if found is None else found.offset
    if options.ending_offsets == "high-watermark":
        return view.end_offset(options.isolation_level, up_to="high-watermark")
    if isinstance(options.ending_offsets, str):
        return None
    offset = options.ending_offsets[view.topic_partition]
    return None if offset == LATEST else _in_range(view, offset, options)


def _in_range(view: PartitionView, offset: int, options: ReadOptions) -> int:
    """An offset that is not in the log is lost data: refused, or moved to the nearest that is."""
    first, end = view.log_start_offset, view.log_end_offset
    if first <= offset <= end:
        return offset
    text = f"offset {offset} of {view.topic_partition} is not in the log, which has {first} to {end}"
    if options.fail_on_data_loss:
        raise OffsetOutOfRangeError(f"{text}; with failOnDataLoss=false what there is would be read")
    LOG.warning("%s; reading what there is", text)
    return max(first, min(offset, end))
