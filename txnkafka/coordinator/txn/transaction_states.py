"""The states of transactional ids: one partition of ``__transaction_state``.

The last record of a transactional id is its state; a tombstone removes it. Only the last records are decoded,
so that loading a large log costs one pass.
Source: TransactionStateManager.loadTransactionMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.log_event import KEPT_RECORD
from txnkafka.wire.records import TransactionMetadata, decode_transaction_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.coordinator.log_event import LogEvent
    from txnkafka.wire.records import LogRecord


class TransactionStates:
    """The last undecoded record of each key; only ``replay`` changes it."""

    def __init__(self) -> None:
        self.last: dict[bytes, bytes | None] = {}

    def kept_bytes(self) -> int:
        """Bytes of the keys and values in memory, with KEPT_RECORD for each record."""
        return sum(KEPT_RECORD + len(key) + len(value or b"") for key, value in self.last.items())

    def replay(self, event: LogEvent) -> None:
        """Apply the next event of the log; events without a key, such as end markers, change nothing."""
        if event.key is not None:
            self.last[event.key] = event.value

    def decoded(self) -> Iterator[tuple[LogRecord, TransactionMetadata | None]]:
        """Yield each last record with its state: None for tombstones and for records that cannot be
        decoded."""
        for key, value in self.last.items():
            record = decode_transaction_log(key, value)
            yield record, TransactionMetadata.of(record)
