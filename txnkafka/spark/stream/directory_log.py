"""``DirectoryLog``: the logs of a stream in log directories that grow.

Each look lists the directories again. The headers that earlier looks and plans have seen are not read again:
a checkpoint of each partition (``PlanCheckpoint``) continues where they ended, as long as the log is the
same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from txnkafka.errors import FileChangedError, LogDirError
from txnkafka.logdir import (
    CannotResumeError,
    Finding,
    LogDir,
    PartitionSource,
    PartitionView,
    PlanCheckpoint,
    ReadUnit,
    ResumablePlan,
    resumable_plan,
)
from txnkafka.logdir.header_pass import segment_containing
from txnkafka.logdir.plan import since
from txnkafka.logdir.requested import end_of
from txnkafka.logdir.resumable_plan import continued_at
from txnkafka.model import TopicPartition
from txnkafka.record.predicate import bind, bounds_of
from txnkafka.spark.log_bounds import LogBounds, OffsetRange
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import (
    PartitionPlan,
    ReadTask,
    divided_units,
    joined_tasks,
    open_log_dir,
    report,
    task_bytes,
)
from txnkafka.spark.selection import check_bounds, named_partitions, selected, starting_offset
from txnkafka.spark.stream.held_back import HeldBack

LOG = logging.getLogger("txnkafka.spark")
_ATTEMPTS: Final = 3  # while a broker compacts the log, its files change
T = TypeVar("T")


@dataclass
class _Followed:
    """A partition as it was last looked at, and where the next look or plan continues."""

    view: PartitionView
    bounds: LogBounds
    checkpoint: PlanCheckpoint


class DirectoryLog:
    """Each look raises LogDirError, UnknownTopicOrPartitionError and ValueError for directories and
    partitions that do not exist."""

    def __init__(self, paths: Sequence[str], options: ReadOptions) -> None:
        self._paths = paths
        self._options = options
        self._followed: dict[TopicPartition, _Followed] = {}
        self._log_dir: LogDir | None = None
        self._owners: dict[int, str | None] = {}
        self._reported: set[Finding] = set()

    def look(self) -> Mapping[TopicPartition, LogBounds]:
        """Return the offsets of the partitions that the options select, as they are now."""
        log_dir = self._log_dir = open_log_dir(self._paths, self._options, self._report)
        named = self._named(log_dir, may_be_gone=not self._options.fail_on_data_loss)
        sources = {source.topic_partition: source for source in log_dir.sources}
        before = self._followed
        self._followed = {
            name: _again(partial(self._look_at, sources[name], before.get(name)))
            for name in selected(named, self._options)
        }
        return {name: followed.bounds for name, followed in self._followed.items()}

    def starting(self) -> Mapping[TopicPartition, int]:
        """Return the offsets where a new stream begins, by its options, in the logs last looked at."""
        assert self._log_dir is not None
        check_bounds(self._named(self._log_dir, may_be_gone=False), self._options)
        found = {}
        for name, followed in self._followed.items():
            with closing(followed.view):
                found[name] = starting_offset(followed.view, self._options)
        return found

    def within(self, part: OffsetRange, size: int) -> tuple[int, int]:
        """Return the end of the first batches of a range that have at most ``size`` bytes together, and their
        bytes; at least one batch."""
        end, used = part.start, 0
        with closing(self._followed[part.topic_partition].view) as view:
            for base_offset, next_offset, length in self._batches(view, part.start):
                if used and used + length > size:
                    break
                if base_offset >= part.end:  # the rest is compacted, or the offset is damaged
                    end = part.end
                    break
                end, used = min(next_offset, part.end), used + length
            else:
                end = part.end
        return end, used

    def bytes_in(self, part: OffsetRange) -> int:
        """Return the approximate number of bytes of a range: offsets of a segment count alike."""
        view = self._followed[part.topic_partition].view
        segments = view.segments
        found = 0
        for i, segment in enumerate(segments):
            end = segments[i + 1].base_offset if i + 1 < len(segments) else view.log_end_offset
            count = min(end, part.end) - max(segment.base_offset, part.start)
            if count > 0:
                found += max(1, segment.size * count // (end - segment.base_offset))
        return found

    def tasks(self, ranges: Sequence[OffsetRange]) -> list[ReadTask]:
        """Return the tasks that read these ranges, in offset order in each partition."""
        limit = task_bytes(sum(map(self.bytes_in, ranges)), self._options, 1)
        plans = (self._plan(part, limit) for part in ranges)
        return joined_tasks(plans, limit, self._options.max_records_per_partition)

    def held_back(self) -> list[HeldBack]:
        """Return the transactions that hold back partitions, in the logs last looked at."""
        found = []
        for name, followed in self._followed.items():
            bounds = followed.bounds
            if bounds.end < bounds.log_end and followed.view.open_transactions:
                oldest = followed.view.open_transactions[0]
                times = [ms for ms in (oldest.first_timestamp, oldest.last_timestamp) if ms >= 0]
                found.append(
                    HeldBack(
                        name,
                        bounds.end,
                        bounds.log_end,
                        oldest.producer_id,
                        oldest.producer_epoch,
                        self._owner(oldest.producer_id),
                        times[0] if times else None,
                    )
                )
        return found

    def close(self) -> None:
        """Close all files."""
        for followed in self._followed.values():
            followed.view.close()

    # Parts

    def _named(self, log_dir: LogDir, *, may_be_gone: bool) -> list[TopicPartition]:
        place = ", ".join(log_dir.paths)
        return named_partitions(
            log_dir.topic_partitions, self._options, place, may_be_none=True, may_be_gone=may_be_gone
        )

    def _look_at(self, source: PartitionSource, before: _Followed | None) -> _Followed:
        if before is not None:
            if _is_unchanged(source, before):
                return before
            try:
                return self._seen(PartitionView(source, before.checkpoint), before.checkpoint)
            except CannotResumeError as error:
                LOG.info("%s: all headers are read again: %s", source.topic_partition, error)
        return self._seen(PartitionView(source), None)

    def _seen(self, view: PartitionView, checkpoint: PlanCheckpoint | None) -> _Followed:
        with closing(view):
            request = self._options.request
            end = end_of(view, request)
            source = view.source
            bounds = LogBounds(
                view.log_start_offset, end, view.log_end_offset, source.cleaned_to, source.topic_id
            )
            if checkpoint is None or end < bounds.log_end:
                # an empty plan: the next look need not read the headers again
                bound = replace(request, start_offset=end if checkpoint is None else None, end_offset=end)
                if checkpoint is not None:
                    bound = replace(bound, end_offset=checkpoint.next_offset)
                checkpoint = resumable_plan(view, bound).checkpoint
            return _Followed(view, bounds, checkpoint)

    def _plan(self, part: OffsetRange, unit_bytes: int) -> PartitionPlan:
        name, options = part.topic_partition, self._options
        followed = self._followed[name]
        try:
            plan = self._resumed(followed, part, unit_bytes)
        except (FileChangedError, LogDirError) as error:  # changed since the last look
            LOG.info("%s is planned again: %s", name, error)
            followed = self._followed[name] = self._seen(PartitionView(followed.view.source), None)
            plan = self._resumed(followed, part, unit_bytes)
        followed.checkpoint = plan.checkpoint
        self._report([*followed.view.findings, *plan.findings])
        units = divided_units(self._wanted(name, plan.units), options)
        return PartitionPlan(tuple(units), options.io == "mmap" and not followed.view.source.being_written)

    def _resumed(self, followed: _Followed, part: OffsetRange, unit_bytes: int) -> ResumablePlan:
        checkpoint = followed.checkpoint
        if checkpoint.next_offset != part.start:
            checkpoint = replace(checkpoint, next_offset=part.start, planned=None)
        request = replace(self._options.request, end_offset=part.end)
        with closing(continued_at(followed.view, checkpoint)) as view:
            return resumable_plan(view, request, unit_bytes=unit_bytes)

    def _wanted(self, name: TopicPartition, units: Iterable[ReadUnit]) -> list[ReadUnit]:
        """Leave out units in which no record can match the predicate."""
        bounds = bounds_of(bind(self._options.where, name))
        inside = (
            unit
            for unit in units
            if unit.start_offset < bounds.end_offset and unit.end_offset > bounds.start_offset
        )
        return since(bounds.start_timestamp, inside)

    def _batches(self, view: PartitionView, start: int) -> Iterator[tuple[int, int, int]]:
        """Yield (base offset, next offset, bytes) of the batches from an offset on."""
        segments, position = view.segments, 0
        first = segment_containing(segments, start)
        checkpoint = self._followed[view.topic_partition].checkpoint
        point = checkpoint.planned
        if point is not None and checkpoint.next_offset == start:
            bases = [segment.base_offset for segment in segments]
            first, position = bases.index(point.segment), point.position
        for segment in segments[first:]:
            for index in segment.indexes_from(position):
                for i in range(len(index)):
                    if index.last_offset[i] >= start:
                        yield index.base_offset[i], index.last_offset[i] + 1, index.size[i]
            position = 0

    def _owner(self, producer_id: int) -> str | None:
        """Return the transactional id of a producer, None if the directory does not have it."""
        if producer_id not in self._owners and self._log_dir is not None:
            owner = self._log_dir.coordinator.owner(producer_id)
            self._owners[producer_id] = None if owner is None else owner.transactional_id
        return self._owners.get(producer_id)

    def _report(self, findings: Iterable[Finding]) -> None:
        """Log each finding once."""
        new = [each for each in findings if each not in self._reported]
        self._reported.update(new)
        report(new)


def _is_unchanged(source: PartitionSource, before: _Followed) -> bool:
    """Return whether the segments of a partition have the same names and sizes as at the last look, and the
    last one had no bytes after its last batch: a preallocated file does not grow. A log of another content is
    noticed when it grows."""
    then, seen = before.view.source, before.checkpoint.seen
    segments = before.view.files.segments
    if seen is None or _facts(source) != _facts(then):
        return False
    last = segments[-1]
    if (last.base_offset, last.size) != (seen.point.segment, seen.point.position):
        return False
    try:
        listed = source.file_system.list(source.path)
    except OSError:
        return False
    join = source.file_system.join
    now = [(join(source.path, each.name), each.size) for each in listed if ".log" in each.name]
    return now == [(segment.path, segment.size) for segment in segments]


def _facts(source: PartitionSource) -> tuple[object, ...]:
    return source.log_start_offset, source.cleaned_to, source.clean_shutdown, source.topic_id


def _again(attempt: Callable[[], T]) -> T:
    """Make an attempt again if a file has changed or gone while it was read."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except CannotResumeError:
            raise
        except (FileChangedError, LogDirError) as error:
            LOG.info("looking again: %s", error)
    return attempt()
