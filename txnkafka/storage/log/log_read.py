"""Reading from a log that is owned: whole batches from an offset on, and which transactions to hide in them.

Source: ``UnifiedLog.read``, ``LocalLog.addAbortedTransactions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.scan import scan
from txnkafka.errors import OffsetOutOfRangeError
from txnkafka.model import IsolationLevel
from txnkafka.storage.log.transactions import transactions_of

if TYPE_CHECKING:
    from txnkafka.storage.formats.txn_index import AbortedTxn
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["LogRead", "read"]


class LogRead(NamedTuple):
    """Whole batches, and the offsets of the log at one moment.

    The first batch may begin below the offset that was asked for. ``aborted_transactions`` overlap with the
    batches, by their first offsets; None unless the read was read_committed.
    """

    records: memoryview
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
    """Batches from the one that holds ``offset`` on, as many as ``max_bytes`` take; with ``at_least_one`` the
    first comes whatever its size. Without an isolation level everything up to the log end is read.

    Raises OffsetOutOfRangeError below the log start and past the log end.
    """
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise OffsetOutOfRangeError(
            f"{log.topic_partition} has no offset {offset}: it begins at {log.log_start_offset} and ends "
            f"before {log.log_end_offset}"
        )
    stable = log.last_stable_offset
    committed = isolation_level is IsolationLevel.READ_COMMITTED
    limit = stable if committed else log.log_end_offset if isolation_level is None else log.high_watermark
    records, end = _batches(log, offset, limit, max_bytes, at_least_one=at_least_one)
    aborted = aborted_transactions(log, offset, end) if committed and end > offset else []
    return LogRead(
        records, aborted if committed else None, log.high_watermark, stable, log.log_start_offset
    )


def _batches(
    log: PartitionLog, offset: int, limit: int, max_bytes: int, *, at_least_one: bool
) -> tuple[memoryview, int]:
    """Whole batches that end at ``limit`` at the latest, and where they end; all from one segment."""
    if offset >= limit:
        return memoryview(b""), offset
    for number in range(log.segment_of(offset), len(log.segments)):
        place = log.find(number, offset)
        if place is None:
            continue
        position, size, _ = place
        data = log.segments[number].read(position, max(size, max_bytes))
        index = scan(data)
        count = min(index.find(limit), len(index))
        while count and index.position[count - 1] + index.size[count - 1] > max_bytes:
            count -= 1
        if not count and at_least_one and len(index) and index.last_offset[0] < limit:
            count = 1
        if not count:
            break
        return data[: index.position[count - 1] + index.size[count - 1]], index.last_offset[count - 1] + 1
    return memoryview(b""), offset


def aborted_transactions(log: PartitionLog, offset: int, end_offset: int) -> list[AbortedTxn]:
    """The aborted transactions with data in [offset, end_offset), by their first offsets."""
    found: list[AbortedTxn] = []
    for number in range(log.segment_of(offset), len(log.segments)):
        entries, complete = transactions_of(log, log.segments[number]).collect(offset, end_offset)
        found += entries
        if complete:
            break
    return sorted(found, key=lambda each: each.first_offset)
