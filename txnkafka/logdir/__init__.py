"""Read-only access to a log directory of any owner."""

from __future__ import annotations

from txnkafka.logdir.directory import LogDir, TopicView
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_point import CannotResumeError
from txnkafka.logdir.partition import PartitionView
from txnkafka.logdir.partition_source import PartitionSource
from txnkafka.logdir.plan import HiddenRange, ReadUnit
from txnkafka.logdir.plan_checkpoint import PlanCheckpoint
from txnkafka.logdir.read import open_unit, read_unit
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.resumable_plan import ResumablePlan, resumable_plan
from txnkafka.storage.formats.segment_reader import SegmentReader

__all__ = [
    "CannotResumeError",
    "Finding",
    "HiddenRange",
    "LogDir",
    "PartitionSource",
    "PartitionView",
    "PlanCheckpoint",
    "ReadRequest",
    "ReadUnit",
    "ResumablePlan",
    "SegmentReader",
    "TopicView",
    "open_unit",
    "read_unit",
    "resumable_plan",
]
