"""Plans of a partition that grows; each plan continues where the previous one ended."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

from txnkafka._core.read_committed import TransactionRange
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_point import HeaderPoint, PassMark
from txnkafka.logdir.partition import PartitionView
from txnkafka.logdir.plan import UNIT_BYTES, ReadUnit
from txnkafka.logdir.plan_checkpoint import PlanCheckpoint
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.requested import located, offsets_of
from txnkafka.logdir.survey import survey


@dataclass(frozen=True, slots=True)
class ResumablePlan:
    """The units that read some offsets of a partition, in offset order.

    ``transactions`` ended in these offsets, in the order of their markers. ``findings`` report damage; the
    next plan, which continues from ``checkpoint``, reports damage after the last offset again."""

    units: list[ReadUnit]
    transactions: list[TransactionRange]
    last_stable_offset: int
    findings: list[Finding]
    checkpoint: PlanCheckpoint


def resumable_plan(
    view: PartitionView, request: ReadRequest | None = None, *, unit_bytes: int = UNIT_BYTES
) -> ResumablePlan:
    """Plan the records of ``request`` like ``view.units``, from the view's checkpoint on if it has one.

    A later ``PartitionView(source, plan.checkpoint)`` plans the records appended or decided since, and scans
    only their headers. Both plans together equal one plan of the whole log. The predicate of the request is
    not part of a plan: it is evaluated on the records read. Raises CannotResumeError if the log is not the
    planned one, ValueError for a request with a start in addition to a checkpoint, and the errors of
    ``view.units``."""
    request = located(view, request or ReadRequest()) or _nothing(view)
    before = view._checkpoint
    if before is not None and request.start_offset is not None:
        raise ValueError("a plan from a checkpoint begins there: the request must not have a start")
    if before is not None:
        request = replace(request, start_offset=before.next_offset)
    start, end = offsets_of(view, request)
    planned = None if before is None else before.planned
    if start >= end:
        checkpoint = view._plan_checkpoint(start, planned)
        return ResumablePlan([], [], view.last_stable_offset, [], checkpoint)
    return _planned(view, request, (start, end), planned, unit_bytes)


def continued_at(view: PartitionView, checkpoint: PlanCheckpoint) -> PartitionView:
    """Return the view of the same moment that continues at another checkpoint, which ``view`` made."""
    found = copy(view)
    found._checkpoint = checkpoint
    return found


def _planned(
    view: PartitionView,
    request: ReadRequest,
    offsets: tuple[int, int],
    begin: HeaderPoint | None,
    unit_bytes: int,
) -> ResumablePlan:
    (start, end), committed = offsets, request.read_committed
    mark = PassMark(end, begin)
    found = survey(view.segments, start, end, unit_bytes, with_txn_index=committed, begin=begin, mark=mark)
    findings = found.findings
    if committed:
        # the previous plan reported transactions that begin before ``start``
        findings = findings + found.held_back(end, 0 if begin is None else start)
    units = found.units(view.topic_partition, start, end, read_committed=committed)
    checkpoint = view._plan_checkpoint(end, mark.point)
    return ResumablePlan(
        units, found.transactions[: mark.ended], view.last_stable_offset, findings, checkpoint
    )


def _nothing(view: PartitionView) -> ReadRequest:
    """Return a request for no records, because none is at or after the start time."""
    return ReadRequest(end_offset=view.log_start_offset)
