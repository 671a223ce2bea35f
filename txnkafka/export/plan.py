"""Plans one round of an export: units of the partitions' plans, stored before anything is read.

A unit has its own files, so units can be staged anywhere, repeatedly, and in any order. It consists of parts
of one partition, which may span segments, so that files reach the requested size. Fingerprints show whether
the bytes are still the planned ones: a cleaner, or another log under the same name, changes the bytes at the
ends of a part.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.errors import CorruptFileError, CorruptRecordError, KafkaError, LogDirError
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_pass import segment_containing
from txnkafka.logdir.plan import BatchIdentity, DamagedBatch, HiddenRange, ReadUnit
from txnkafka.logdir.read import open_unit
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.requested import located, offsets_of, units_of
from txnkafka.model import TopicPartition
from txnkafka.shown import offset_range
from txnkafka.storage.formats.checkpoint import EpochEntry, parse_leader_epoch_checkpoint
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT
from txnkafka.storage.formats.limits import EPOCHS_LIMIT
from txnkafka.storage.log.leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from txnkafka.env import FileSystem
    from txnkafka.export.options import ExportOptions
    from txnkafka.logdir.partition import PartitionView

FINGERPRINT_BYTES = 4 << 10
PARTS_PER_FILE = 8  # parts this small keep files at most an eighth larger than requested

NO_START = "restore the file, or let the export leave damaged batches out (on_corrupt='skip')"

Locate = Callable[["PartitionView"], ReadRequest]
"""Returns the request for a partition; called when the partition is planned."""


class ExportedEnd(NamedTuple):
    """The end of a partition's export, and the identity of its log: the topic id, and the leader epoch of the
    last batch before that offset (None: unknown). ``is_complete``: the export reached the end of the request,
    so no later offsets are exported."""

    offset: int
    topic_id: str | None = None
    leader_epoch: int | None = None
    is_complete: bool = False


class PlannedRange(NamedTuple):
    """Offsets [start_offset, end.offset) of a partition, completely covered by units of the plan."""

    topic: str
    partition: int
    start_offset: int
    end: ExportedEnd


class ExportPart(NamedTuple):
    """Consecutive bytes of one segment, and their fingerprint."""

    fingerprint: str
    unit: ReadUnit


class ExportUnit(NamedTuple):
    """A unit with its number in the plan: parts of one partition in offset order, at least one."""

    number: int
    parts: tuple[ExportPart, ...]

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the unit."""
        unit = self.parts[0].unit
        return TopicPartition(unit.topic, unit.partition)

    @property
    def size(self) -> int:
        """The number of log bytes."""
        return sum(part.unit.end_position - part.unit.start_position for part in self.parts)


class RoundPlan(NamedTuple):
    """All units of one round; ``findings`` report the damage found while planning."""

    ranges: list[PlannedRange]
    units: list[ExportUnit]
    findings: list[Finding]

    def to_json(self) -> bytes:
        """Return a JSON line for the whole plan, then one line per unit."""
        head = {"ranges": self.ranges, "findings": self.findings}
        lines = [head, *(unit.parts for unit in self.units)]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    @classmethod
    def from_json(cls, content: bytes) -> RoundPlan:
        """Parse the plan that ``to_json`` wrote."""
        head, *units = map(json.loads, content.splitlines())
        return cls(
            [PlannedRange._make([*bounds, ExportedEnd(*end)]) for *bounds, end in head["ranges"]],
            [ExportUnit(i, _parts(parts)) for i, parts in enumerate(units)],
            [Finding(*finding) for finding in head["findings"]],
        )


def _parts(parts: list[Any]) -> tuple[ExportPart, ...]:
    return tuple(ExportPart(mark, _read_unit(unit)) for mark, unit in parts)


def _read_unit(values: list[Any]) -> ReadUnit:
    unit = ReadUnit(*values)
    return unit._replace(
        hidden=tuple(HiddenRange(*hidden_range) for hidden_range in unit.hidden),
        damage=tuple(DamagedBatch(*damaged) for damaged in unit.damage),
        first_batch=unit.first_batch and BatchIdentity(*unit.first_batch),
        last_batch=unit.last_batch and BatchIdentity(*unit.last_batch),
    )


def plan_round(
    views: Iterable[PartitionView],
    options: ExportOptions,
    locate: Locate,
    exported: dict[TopicPartition, ExportedEnd],
) -> RoundPlan:
    """Plan the request that ``locate`` returns for each partition, continuing at the end of an earlier round
    (``exported``).

    A partition whose start is hidden by a damaged batch is left out, with a finding. Raises KafkaError when a
    log is not the exported one or ends below its exported end, and the errors of planning."""
    plan = RoundPlan([], [], [])
    for view in views:
        try:
            request = locate(view)
            done = exported.get(view.topic_partition)
            if done is not None and done.is_complete:
                continue
            if done is not None:
                request = _continued(view, request, done, plan.findings)
            by_offsets = located(view, request)
            if by_offsets is not None:
                _plan_partition(view, options, by_offsets, plan)
        except CorruptRecordError as error:
            if error.offset is None:  # not a damaged batch: the file has changed
                raise
            plan.findings.append(_no_start(error))
        finally:
            view.close()  # the headers of all partitions would take too much memory
    return plan


def _no_start(error: CorruptRecordError) -> Finding:
    """Return the finding for a partition that is left out because a damaged batch may contain its start."""
    what = f"{error.reason}, and it may contain the first record at or after the start time"
    return Finding(error.file or "", error.position, "error", "corrupt-batch", what, NO_START)


def _plan_partition(
    view: PartitionView, options: ExportOptions, request: ReadRequest, plan: RoundPlan
) -> None:
    start, end = offsets_of(view, request)
    end = max(start, end)
    is_complete = request.end_offset is not None and end >= request.end_offset
    plan.findings.extend(view.findings)
    request = replace(request, start_offset=start, end_offset=end)
    part_bytes = max(1, options.file_bytes // PARTS_PER_FILE)
    units = units_of(view, request, unit_bytes=part_bytes, findings=plan.findings)
    known = ExportedEnd(end, view.topic_id, _leader_epoch(view, end - 1), is_complete)
    plan.ranges.append(PlannedRange(*view.topic_partition, start, known))
    for together in _files_of(units, options.file_bytes):
        parts = tuple(ExportPart(fingerprint(view.source.file_system, unit), unit) for unit in together)
        plan.units.append(ExportUnit(len(plan.units), parts))


def _files_of(units: Iterable[ReadUnit], file_bytes: int) -> Iterator[list[ReadUnit]]:
    """Divide units into files of about ``file_bytes``. Adjacent units of a segment are joined and read as
    one."""
    together: list[ReadUnit] = []
    size = 0
    for unit in units:
        size += unit.end_position - unit.start_position
        if together and together[-1].is_followed_by(unit):
            together[-1] = together[-1].joined(unit)
        else:
            together.append(unit)
        if size >= file_bytes:
            yield together
            together, size = [], 0
    if together:
        yield together


def _continued(
    view: PartitionView, request: ReadRequest, exported: ExportedEnd, findings: list[Finding]
) -> ReadRequest:
    """Return the request for the records not exported yet, without a start time."""
    if another := _another_log(view, exported):
        raise KafkaError(f"{view.topic_partition} was exported {another}; export it to another directory")
    start = view.log_start_offset
    lost = start if request.end_offset is None else min(start, request.end_offset)
    if exported.offset < lost:
        deleted = offset_range(exported.offset, lost - 1)
        what = f"deleted before it was exported: {deleted}"
        findings.append(
            Finding(view.path, None, "error", "deleted-before-export", what, "restore them from a backup")
        )
    return replace(request, start_offset=max(exported.offset, start), start_time=None)


def _another_log(view: PartitionView, exported: ExportedEnd) -> str | None:
    """Return the evidence that this is not the exported log, or that it was truncated since; None without
    evidence."""
    offset, topic_id, leader_epoch, _ = exported
    if None not in (topic_id, view.topic_id) and topic_id != view.topic_id:
        return f"when its topic id was {topic_id} and is {view.topic_id} now: the topic was created again"
    if offset > view.log_end_offset:
        ends = f"up to offset {offset} and now ends at {view.log_end_offset}"
        return f"{ends}: this is another log, or it was truncated"
    found = _leader_epoch(view, offset - 1)
    if None not in (leader_epoch, found) and leader_epoch != found:
        epochs = f"with leader epoch {leader_epoch} and has leader epoch {found} there now"
        return f"up to offset {offset} {epochs}: it was truncated, and has grown again"
    if found is None and leader_epoch is not None:  # the batch was compacted away
        ended = LeaderEpochs(_noted_epochs(view)).end_offset_for(leader_epoch, offset)
        if ended is not None and ended[1] < offset:
            epochs = f"with leader epoch {leader_epoch}, and that ends at offset {ended[1]} now"
            return f"up to offset {offset} {epochs}: it was truncated, and has grown again"
    return None


def _noted_epochs(view: PartitionView) -> list[EpochEntry]:
    """Return the entries of ``leader-epoch-checkpoint``; empty if it cannot be read."""
    files = view.source.file_system
    path = files.join(view.path, LEADER_EPOCH_CHECKPOINT)
    try:
        return parse_leader_epoch_checkpoint(files.read(path, EPOCHS_LIMIT)) if files.exists(path) else []
    except (CorruptFileError, OSError):
        return []


def _leader_epoch(view: PartitionView, offset: int) -> int | None:
    """Return the leader epoch of the batch that contains ``offset``; None without a batch or an epoch.
    Cleaning and deletion of segments do not change the epochs of other batches."""
    segments = view.segments
    if not segments:
        return None
    for index in segments[segment_containing(segments, offset)].indexes():
        i = bisect_left(index.last_offset, offset)
        if i < len(index):
            has_epoch = index.base_offset[i] <= offset and index.partition_leader_epoch[i] >= 0
            return index.partition_leader_epoch[i] if has_epoch else None
    return None


def fingerprint(file_system: FileSystem, unit: ReadUnit) -> str:
    """Return a digest of the first and last bytes of a unit. Raises LogDirError if they cannot be read."""
    import xxhash

    digest = xxhash.xxh3_64()
    try:
        for part in _ends(file_system, unit):
            digest.update(part)
    except LogDirError as error:
        raise LogDirError(f"{error}; the export was planned with this file: restore it") from error
    return digest.hexdigest()


def _ends(file_system: FileSystem, unit: ReadUnit) -> Iterator[bytes]:
    segment = open_unit(file_system, unit)
    try:
        last = max(unit.start_position, unit.end_position - FINGERPRINT_BYTES)
        for position in (unit.start_position, last):
            length = min(FINGERPRINT_BYTES, unit.end_position - position)
            part = bytes(segment.read(position, length))
            yield len(part).to_bytes(4, "big") + part
    finally:
        segment.close()
