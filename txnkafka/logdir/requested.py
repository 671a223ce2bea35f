"""Applies a read request to the view of a partition: its offsets, its units of work, its records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptRecordError, OffsetOutOfRangeError
from txnkafka.logdir.count import count_unit
from txnkafka.logdir.noted_offsets import known_high_watermark
from txnkafka.logdir.plan import UNIT_BYTES, ReadUnit, since
from txnkafka.logdir.read import opened
from txnkafka.logdir.read_ahead import NewDecoder, read_in_order, unit_bytes_of
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.survey import survey
from txnkafka.logdir.timestamps import offset_for_timestamp
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.record.filter import RecordFilter, decoder_for
from txnkafka.record.predicate import ANY, bind, bounds_of

if TYPE_CHECKING:
    from txnkafka._core.columns import RecordColumns
    from txnkafka.logdir.finding import Finding
    from txnkafka.logdir.log_view import LogView
    from txnkafka.logdir.timestamps import OffsetAndTimestamp
    from txnkafka.record.batch import Record


def end_of(view: LogView, request: ReadRequest) -> int:
    """Return the offset where a reader of the request's isolation level stops, without the request's own end.
    Raises LogDirError if the request needs the high watermark and the broker's checkpoint has none."""
    end = view.log_end_offset
    if request.up_to == "high-watermark" and end > view.log_start_offset:
        end = max(view.log_start_offset, min(known_high_watermark(view.source), end))
    return min(end, view.last_stable_offset) if request.read_committed else end


def offsets_of(view: LogView, request: ReadRequest) -> tuple[int, int]:
    """Return the offsets [start, end) of a request without times. Raises OffsetOutOfRangeError for a start
    outside the log."""
    end = end_of(view, request)
    if request.end_offset is not None:
        end = min(request.end_offset, end)
    if request.start_offset is not None and request.start_offset < 0:
        return max(view.log_start_offset, end + request.start_offset), end
    return _valid_start(view, request.start_offset), end


def _valid_start(view: LogView, start_offset: int | None) -> int:
    if start_offset is None:
        return view.log_start_offset
    if not view.log_start_offset <= start_offset <= view.log_end_offset:
        raise OffsetOutOfRangeError(
            f"offset {start_offset} of {view.topic_partition} is not in the log, "
            f"which has {view.log_start_offset} to {view.log_end_offset}"
        )
    return start_offset


def located(view: LogView, request: ReadRequest) -> ReadRequest | None:
    """Return ``request`` with offsets instead of times; None if no record is at or after its start time.

    Raises CorruptRecordError if a damaged batch may contain the first record; a request that leaves damaged
    batches out begins at that batch, and reading reports it. The search for the end ignores damaged batches:
    their headers cannot be trusted, and all are before the end, so reading stops at them or leaves them out.
    """
    start, end = request.start_offset, request.end_offset
    if request.start_time is not None:
        start = _start_at(view, request, request.start_time)
        if start is None:
            return None
    if request.end_time is not None:
        search = ReadRequest.of(request.isolation_level, on_corrupt=_pass_over)
        found = record_at_time(view, request.end_time, search)
        end = None if found is None else found.offset
    return replace(request, start_offset=start, end_offset=end, start_time=None, end_time=None)


def _start_at(view: LogView, request: ReadRequest, timestamp: int) -> int | None:
    try:
        found = record_at_time(view, timestamp, ReadRequest.of(request.isolation_level))
    except CorruptRecordError as error:
        if request.damage_handler is None or error.offset is None:
            raise
        return max(error.offset, view.log_start_offset)
    return None if found is None else found.offset


def record_at_time(view: LogView, timestamp: int, request: ReadRequest) -> OffsetAndTimestamp | None:
    """Return the first record at or after ``timestamp`` (milliseconds) below the end of the request's
    isolation level; None if none exists. Raises CorruptRecordError if a damaged batch might contain it and
    the request does not leave damaged batches out."""
    limits, handler = (view.log_start_offset, end_of(view, request)), request.damage_handler
    try:
        return offset_for_timestamp(view.segments, timestamp, *limits, on_corrupt=handler)
    except CorruptRecordError as error:
        error.locate(topic=view.topic, partition=view.partition)
        raise


def _pass_over(error: CorruptRecordError) -> None:
    if error.offset is None:  # not a damaged batch: the file has changed
        raise error


def units_of(
    view: LogView,
    request: ReadRequest,
    *,
    unit_bytes: int = UNIT_BYTES,
    findings: list[Finding] | None = None,
) -> list[ReadUnit]:
    """Return the units that read the records of ``request``, without units in which no record can match its
    predicate. The survey appends damage to ``findings``. Raises OffsetOutOfRangeError."""
    by_offsets = located(view, request)
    start, end = (0, 0) if by_offsets is None else offsets_of(view, by_offsets)
    bounds = bounds_of(bind(request.where, view.topic_partition))
    start, end = max(start, bounds.start_offset), min(end, bounds.end_offset)
    if start >= end or bounds.empty:
        return []
    found = survey(view.segments, start, end, unit_bytes, with_txn_index=request.read_committed)
    if findings is not None:
        findings += found.findings + (found.held_back(end) if request.read_committed else [])
    units = found.units(view.topic_partition, start, end, read_committed=request.read_committed)
    return since(bounds.start_timestamp, units)


def unit_bytes(view: LogView) -> int:
    """Return the unit size, in bytes, for reading the partition in this process."""
    return unit_bytes_of(sum(segment.size for segment in view.segments), view.source.threads)


def read_requested(view: LogView, request: ReadRequest, new_decoder: NewDecoder) -> Iterator[RecordColumns]:
    """Yield the records of ``request`` as columns, using the given kind of decoder. Raises CorruptRecordError
    at a damaged batch, unless the request leaves it out."""
    yield from read_units(view, units_of(view, request, unit_bytes=unit_bytes(view)), request, new_decoder)


def records_requested(view: LogView, request: ReadRequest) -> Iterator[Record]:
    """Yield the records of ``request`` as Record objects with headers, like ``read_requested``."""
    for columns in read_requested(view, request, partial(ChunkDecoder, headers=True)):
        yield from records_of(columns)


def read_units(
    view: LogView, units: list[ReadUnit], request: ReadRequest, new_decoder: NewDecoder
) -> Iterator[RecordColumns]:
    """Yield the records of ``units`` that match the predicate of ``request``, like ``read_requested``."""
    select = RecordFilter(request.where, view.topic_partition)
    threads, on_corrupt = view.source.threads, request.damage_handler
    for chunk in read_in_order(view.segments, units, new_decoder, on_corrupt, threads=threads):
        selected = select(chunk)
        if len(selected):
            yield selected


def count_requested(view: LogView, request: ReadRequest) -> int:
    """Return the number of records of ``request``: from batch headers, or by reading if it has a
    predicate."""
    if request.where != ANY:
        return sum(map(len, read_requested(view, request, partial(decoder_for, (), request.where))))
    decoder, handler = ChunkDecoder(views=True), request.damage_handler
    units = opened(view.segments, units_of(view, request))
    return sum(count_unit(segment, unit, decoder, handler) for segment, unit in units)
