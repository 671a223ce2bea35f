"""Converts the times of a request to offsets of one partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.timestamps import OffsetAndTimestamp

__all__ = ["located"]


def located(
    request: ReadRequest, log_start_offset: int, find: Callable[[int], OffsetAndTimestamp | None]
) -> ReadRequest | None:
    """Return ``request`` with offsets instead of times; None when no record is at or after its start time.

    ``find`` returns the first record at or after a time. Where it raises CorruptRecordError and the request
    leaves damaged batches out, the offset of that batch is used.
    """
    start, end = request.start_offset, request.end_offset
    if request.start_time is not None:
        start = _offset_at(request.start_time, request, log_start_offset, find)
        if start is None:
            return None
    if request.end_time is not None:
        end = _offset_at(request.end_time, request, log_start_offset, find)
    return replace(request, start_offset=start, end_offset=end, start_time=None, end_time=None)


def _offset_at(
    timestamp: int,
    request: ReadRequest,
    log_start_offset: int,
    find: Callable[[int], OffsetAndTimestamp | None],
) -> int | None:
    try:
        found = find(timestamp)
    except CorruptRecordError as error:
        if request.damage_handler is None or error.offset is None:
            raise
        request.damage_handler(error)
        return max(error.offset, log_start_offset)
    return None if found is None else found.offset
