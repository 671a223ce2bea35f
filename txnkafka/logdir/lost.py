"""Finds losses inside a log: offsets with a missing segment or batch, and transactions that lost their end
markers with them.

The pass reads all batch headers of the log, so it costs as much as ``txnkafka show``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.read_committed import TransactionScan
from txnkafka.logdir.header_pass import header_pass

if TYPE_CHECKING:
    from txnkafka.logdir.log_view import LogView


class Lost(NamedTuple):
    """``missing`` has the first and last offset of each missing or damaged range; ``transactions`` is the
    number of transactions without an end marker, and ``records`` the number of their records: read_committed
    readers do not get them."""

    missing: list[tuple[int, int]]
    transactions: int
    records: int


def lost_in(view: LogView) -> Lost:
    """Return the losses between the log start and the log end. Raises the errors of reading headers."""
    segments, start, end = view.segments, view.log_start_offset, view.log_end_offset
    missing: list[tuple[int, int]] = []
    transactions = records = 0

    def add(first: int, limit: int) -> None:
        first, last = max(first, start), min(limit, end) - 1
        if first <= last:
            missing.append((first, last))

    if not segments:
        return Lost(missing, 0, 0)
    scan = TransactionScan(segments[0].base_offset)
    before = segments[0].base_offset
    for headers in header_pass(segments, 0, scan):
        if headers.hole:
            add(before, headers.segment.base_offset)
        before = max(scan.next_offset, headers.next_offset)
        if headers.index.stop != "end":
            add(before, headers.limit)
            before = max(before, headers.limit) if headers.limit <= end else before
        for transaction in scan.ended:
            if transaction.outcome == "undecided" and transaction.last_offset >= start:
                transactions += 1
                records += transaction.records
        scan.ended.clear()
    return Lost(missing, transactions, records)
