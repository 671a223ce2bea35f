"""The ``.txnindex`` of a segment of an open log: its aborted transactions in memory, and their file.

Source: ``TransactionIndex``, ``LocalLog.addAbortedTransactions``.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING

from txnkafka.storage.formats.txn_index import ENTRY_SIZE, AbortedTxn, packed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.env import DataFile
    from txnkafka.model import CompletedTxn

_last_offset = attrgetter("last_offset")


class TxnIndexFile:
    """The aborted transactions whose markers are in one segment, in the order of the markers."""

    __slots__ = ("_base_offset", "_cut", "_saved", "entries")

    def __init__(self, base_offset: int, entries: Iterable[AbortedTxn] = ()) -> None:
        self._base_offset = base_offset
        self.entries = list(entries)
        self._saved = len(self.entries)  # number of entries in the file
        self._cut = False

    @property
    def is_saved(self) -> bool:
        """True if the file contains exactly the entries in memory."""
        return self._saved == len(self.entries) and not self._cut

    def append(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        """Add an aborted transaction. Raises ValueError unless its marker is after all others."""
        if last_offset < self._base_offset or (self.entries and last_offset <= self.entries[-1].last_offset):
            raise ValueError(f"a transaction that ends at {last_offset} does not follow in the index")
        self.entries.append(AbortedTxn(0, producer_id, first_offset, last_offset, last_stable_offset))

    def add(self, completed: Iterable[CompletedTxn]) -> None:
        """Add the aborted transactions among completed ones. Raises ValueError like ``append``."""
        for txn in completed:
            if txn.is_aborted:
                self.append(txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)

    def replaces_file(self) -> None:
        """Replace the whole content of the file at the next save."""
        self._saved, self._cut = 0, True

    def keep_below(self, offset: int) -> None:
        """Remove the transactions that end at or after ``offset``."""
        del self.entries[bisect_left(self.entries, offset, key=_last_offset) :]
        if self._saved > len(self.entries):
            self._saved, self._cut = len(self.entries), True

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """Return the aborted transactions for a read of [fetch_offset, upper_bound), and True if later
        segments cannot have more (``TransactionIndex.collectAbortedTxns``)."""
        found = []
        for entry in self.entries[bisect_left(self.entries, fetch_offset, key=_last_offset) :]:
            if entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def save(self, file: DataFile) -> None:
        """Write the entries to the file. Raises OSError."""
        if self._cut:
            file.truncate(self._saved * ENTRY_SIZE)
            self._cut = False
        if self._saved < len(self.entries):
            file.write(self._saved * ENTRY_SIZE, [packed(self.entries[self._saved :])])
            self._saved = len(self.entries)
