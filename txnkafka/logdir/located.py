"""Converts the times of a request to offsets of one partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.timestamps import OffsetAndTimestamp

if TYPE_CHECKING:
    from txnkafka.record.chunk import OnCorrupt

__all__ = ["located"]

Find = Callable[[int, "str | OnCorrupt"], OffsetAndTimestamp | None]


def located(request: ReadRequest, log_start_offset: int, find: Find) -> ReadRequest | None:
    """Return ``request`` with offsets instead of times; None when no record is at or after its start time.

    ``find`` returns the first record at or after a time; its second argument is ``on_corrupt``. A damaged
    batch that may contain the first record raises CorruptRecordError, or is where a request begins that
    leaves damaged batches out: reading meets and reports it. The search for the end passes over damaged
    batches. Their headers cannot be trusted, and all of them are in front of the end, so that reading stops
    at them or leaves them out.
    """
    start, end = request.start_offset, request.end_offset
    if request.start_time is not None:
        start = _start_at(request.start_time, request, log_start_offset, find)
        if start is None:
            return None
    if request.end_time is not None:
        found = find(request.end_time, _pass_over)
        end = None if found is None else found.offset
    return replace(request, start_offset=start, end_offset=end, start_time=None, end_time=None)


def _start_at(timestamp: int, request: ReadRequest, log_start_offset: int, find: Find) -> int | None:
    try:
        found = find(timestamp, "stop")
    except CorruptRecordError as error:
        if request.damage_handler is None or error.offset is None:
            raise
        return max(error.offset, log_start_offset)
    return None if found is None else found.offset


def _pass_over(error: CorruptRecordError) -> None:
    if error.offset is None:  # not a damaged batch: the file has changed
        raise error
