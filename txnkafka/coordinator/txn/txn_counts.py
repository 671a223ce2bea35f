"""``TransactionCounts``: outcomes of a coordinator's transactions since its start."""

from __future__ import annotations

from txnkafka.coordinator.txn.txn_events import Event, Timeout
from txnkafka.coordinator.txn.txn_image import COMPLETE_ABORT, COMPLETE_COMMIT
from txnkafka.wire.records import TransactionMetadata


class TransactionCounts:
    """Number of completed transactions by outcome, and of timed out ones."""

    __slots__ = ("aborted", "committed", "timed_out")

    def __init__(self) -> None:
        self.committed = 0
        self.aborted = 0
        self.timed_out = 0

    def add(self, metadata: TransactionMetadata | None, event: Event) -> None:
        """Count a record that became durable, and the event that caused it."""
        if metadata is None:
            return
        if metadata.state == COMPLETE_COMMIT:
            self.committed += 1
        elif metadata.state == COMPLETE_ABORT:
            self.aborted += 1
        elif isinstance(event, Timeout):
            self.timed_out += 1
