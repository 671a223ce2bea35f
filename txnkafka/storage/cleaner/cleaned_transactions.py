"""Follows the transactions of a log during compaction: which data is aborted, and which markers are obsolete.

The markers in the log determine the aborted transactions. A ``.txnindex`` is not trusted: with a missing
entry, aborted records would replace committed ones for ever; with an extra entry, committed records would be
removed.

Source: ``CleanedTransactionMetadata``.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.model import CompletedTxn
from txnkafka.record.batch_header import ATTRIBUTE_TRANSACTIONAL, CONTROL_ABORT, CONTROL_COMMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnkafka._core.scan import BatchHeader
    from txnkafka.storage.formats.txn_index import AbortedTxn
    from txnkafka.storage.log.log_segment import LogSegment

_last_offset = attrgetter("last_offset")


class CleanedTransactions:
    """The aborted transactions of the whole log, and the transactions seen so far by one pass from its
    beginning."""

    def __init__(self) -> None:
        self._aborted: dict[int, list[CompletedTxn]] = {}
        self._with_data: set[int] = set()

    def read(self, segments: Sequence[LogSegment], newest: Sequence[AbortedTxn]) -> Iterator[int]:
        """Read the headers of all batches of the closed segments of a log, and yield the number of batches of
        each window; ``newest`` are the aborted transactions whose markers are in the active segment. A marker
        may be above the last stable offset, where another transaction is open. Raises OSError."""
        table = ProducerTable()
        for segment in segments:
            for batches in segment.windows():
                completed: list[CompletedTxn] = []
                table.replay(batches, segments[0].base_offset, completed)
                for transaction in completed:
                    if transaction.is_aborted:
                        self._aborted.setdefault(transaction.producer_id, []).append(transaction)
                yield len(batches)
        for txn in newest:
            transaction = CompletedTxn(
                txn.producer_id, txn.first_offset, txn.last_offset, True, txn.last_stable_offset
            )
            self._aborted.setdefault(txn.producer_id, []).append(transaction)

    def aborted_at(self, producer_id: int, offset: int) -> CompletedTxn | None:
        """Return the aborted transaction of a producer that contains ``offset``, or None."""
        found = self._aborted.get(producer_id, [])
        number = bisect_left(found, offset, key=_last_offset)
        return found[number] if number < len(found) and found[number].first_offset <= offset else None

    def is_aborted(self, batch: BatchHeader) -> bool:
        """Return True if a data batch belongs to an aborted transaction."""
        if not batch.attributes & ATTRIBUTE_TRANSACTIONAL:
            return False
        return self.aborted_at(batch.producer_id, batch.base_offset) is not None

    def see_data(self, batch: BatchHeader) -> None:
        """Record that the pass has seen this data batch, which may be empty."""
        if batch.attributes & ATTRIBUTE_TRANSACTIONAL:
            self._with_data.add(batch.producer_id)

    def see_marker(self, batch: BatchHeader) -> bool:
        """Record that the pass has seen this control batch; return True if no data of its transaction is
        left. Control types that do not end a transaction stay for ever."""
        if batch.control_type not in (CONTROL_ABORT, CONTROL_COMMIT):
            return False
        if batch.producer_id in self._with_data:
            self._with_data.remove(batch.producer_id)
            return False
        return True
