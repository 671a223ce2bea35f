"""Reads from an open log: a slice of one segment from an offset on, and the aborted transactions in it,
without reading or copying records.

A slice begins with a batch. If ``max_bytes`` ends inside a batch, so does the slice, as in Kafka: consumers
ignore a partial last batch. If the high watermark or the last stable offset limits the read, the slice ends
exactly there.

Source: ``UnifiedLog.read``, ``LocalLog.read``, ``LogSegment.read``, ``LocalLog.addAbortedTransactions``.
"""

from __future__ import annotations

from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import OffsetOutOfRangeError
from txnkafka.model import IsolationLevel
from txnkafka.storage.log.log_slice import LogSlice
from txnkafka.storage.log.transactions import have_ended, listed_transactions, transactions_of

if TYPE_CHECKING:
    from txnkafka.storage.formats.txn_index import AbortedTxn
    from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata
    from txnkafka.storage.log.partition_log import PartitionLog

_READ_COMMITTED = IsolationLevel.READ_COMMITTED
_first_offset = attrgetter("first_offset")


class LogRead(NamedTuple):
    """The answer to a read, and the offsets of the log at the same moment.

    The caller must release ``records``. Its first batch may begin below the requested offset; without data,
    it is empty and has the position where the offset will be. ``aborted_transactions`` has the transactions
    with data in the slice, sorted by first offset; if ``max_bytes`` ended the slice, also some that begin up
    to one index interval after it. It is None unless the read was read_committed."""

    records: LogSlice
    aborted_transactions: list[AbortedTxn] | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


def read(
    log: PartitionLog,
    offset: int,
    *,
    max_bytes: int,
    isolation_level: IsolationLevel | None = IsolationLevel.READ_COMMITTED,
    at_least_one: bool = True,
) -> LogRead:
    """Read a slice of at most ``max_bytes`` that begins with the batch that contains ``offset``, or the next
    one. With ``at_least_one`` that batch is whole, whatever its size. Without an isolation level the read
    ends at the log end.

    Raises OffsetOutOfRangeError below the log start and after the log end, CorruptRecordError and OSError."""
    offsets = log.offsets
    if not offsets.log_start <= offset <= offsets.log_end:
        raise OffsetOutOfRangeError(
            f"{log.topic_partition} has no offset {offset}: it begins at {offsets.log_start} and ends before "
            f"{offsets.log_end}"
        )
    committed = isolation_level is _READ_COMMITTED
    if committed:
        limit = offsets.last_stable_metadata
        stable = limit.offset
    else:
        limit = log.log_end_metadata if isolation_level is None else offsets.high_watermark_metadata
        stable = offsets.last_stable
    records, end_offset, number = _slice(log, offset, limit, max_bytes, at_least_one=at_least_one)
    aborted = aborted_transactions(log, number, offset, end_offset) if committed and records.size else []
    return LogRead(records, aborted if committed else None, offsets.high_watermark, stable, offsets.log_start)


def _slice(
    log: PartitionLog, offset: int, limit: LogOffsetMetadata, max_bytes: int, *, at_least_one: bool
) -> tuple[LogSlice, int, int]:
    """Return the slice, an upper bound of the offsets in it (exclusive), and the number of its segment. An
    empty slice has the position where ``offset`` is or will be."""
    if offset >= limit.offset:
        if offset > limit.offset:
            limit = log.offsets.positions.look_up(offset)
        return LogSlice(None, limit.segment_base_offset, limit.position, 0), offset, 0
    active, waited_at = log.active, log.offsets.positions.waited_at
    if (
        waited_at is not None
        and waited_at.offset == offset
        and waited_at.segment_base_offset == limit.segment_base_offset == active.base_offset
        and limit.position - waited_at.position <= max_bytes
    ):  # a consumer at the log end fetches the newest batches: no lookup needed
        size = limit.position - waited_at.position
        return active.files.slice(waited_at.position, size), limit.offset, len(log.segments) - 1
    number, segment, first = log.segments.locate(offset)
    if first is None or segment.base_offset > limit.segment_base_offset:
        return LogSlice(None, limit.segment_base_offset, limit.position, 0), offset, number
    position, first_size, _, last_offset = first
    is_last = segment.base_offset == limit.segment_base_offset
    room = (limit.position if is_last else segment.size) - position
    size = first_size if at_least_one and first_size > max_bytes else max_bytes
    if size > room:
        size = room
    if size <= 0:
        return LogSlice(None, segment.base_offset, position, 0), offset, number
    if size <= first_size:
        end_offset = last_offset + 1
    elif is_last and size == room:
        end_offset = limit.offset
    else:
        end_offset = min(_offset_behind(log, number, position + size), limit.offset)
    return segment.files.slice(position, size), end_offset, number


def _offset_behind(log: PartitionLog, number: int, position: int) -> int:
    """Return an upper bound (exclusive) of the offsets below ``position`` of a segment, as close as the index
    allows (``LogSegment.fetchUpperBoundOffset``)."""
    index = log.segments[number].offset_index
    entry = index.at_position(position)
    if entry < len(index):
        return index[entry].offset
    return log.segments[number + 1].base_offset if number + 1 < len(log.segments) else log.log_end_offset


def aborted_transactions(log: PartitionLog, number: int, offset: int, end_offset: int) -> list[AbortedTxn]:
    """Return the aborted transactions with data in [offset, end_offset), sorted by first offset. ``number``
    is the number of the segment that contains ``offset``."""
    if number == len(log.segments) - 1 and (index := log.active.txn_index) is not None and not index.entries:
        return []  # the usual case
    found: list[AbortedTxn] = []
    ended = False  # transactions in the range that ended before the segment
    for segment in islice(log.segments, number, None):
        index = segment.txn_index
        if index is None:
            ended = ended or have_ended(log, segment, end_offset)
            index = (listed_transactions if ended else transactions_of)(log, segment)
        if not index.entries:
            continue
        entries, complete = index.collect(offset, end_offset)
        found += entries
        if complete:
            break
    return sorted(found, key=_first_offset)
