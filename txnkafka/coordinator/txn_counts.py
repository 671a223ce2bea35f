"""``TransactionCounts``: what became of the transactions of a coordinator since it was started."""

from __future__ import annotations

from txnkafka.coordinator.txn_events import Event, Timeout
from txnkafka.coordinator.txn_image import COMPLETE_ABORT, COMPLETE_COMMIT
from txnkafka.wire.records import TransactionMetadata

__all__ = ["TransactionCounts"]


class TransactionCounts:
    """Transactions that are complete by their outcome, and those whose timeout was over."""

    __slots__ = ("aborted", "committed", "timed_out")

    def __init__(self) -> None:
        self.committed = 0
        self.aborted = 0
        self.timed_out = 0

    def add(self, metadata: TransactionMetadata | None, event: Event) -> None:
        """A record became durable, because of an event."""
        if metadata is None:
            return
        if metadata.state == COMPLETE_COMMIT:
            self.committed += 1
        elif metadata.state == COMPLETE_ABORT:
            self.aborted += 1
        elif isinstance(event, Timeout):
            self.timed_out += 1
