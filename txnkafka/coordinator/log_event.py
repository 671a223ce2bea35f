"""``LogEvent``: a record or an end marker of a coordinator's log, in offset order.

A record does not name the producer of its transaction; the header of its batch does. ``log_events`` joins
headers and decoded records by their offsets.
Invariant: an event has the producer id of the batch that contains the record, even across skipped damage.
Source: TransactionStateManager.loadTransactionMetadata, CoordinatorLoaderImpl.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.model import NO_PRODUCER_ID
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL
from txnkafka.record.control import ControlRecordType

if TYPE_CHECKING:
    from txnkafka.record.batch import Record

KEPT_RECORD = 64  # bytes in memory per record, in addition to key and value


class LogEvent(NamedTuple):
    """A record, or the end of a transaction when ``committed`` is not None.

    ``producer_id`` is -1 for a record outside of any transaction."""

    offset: int
    producer_id: int
    committed: bool | None
    key: bytes | None
    value: bytes | None

    @property
    def size(self) -> int:
        """Bytes of key and value, plus the approximate size of their objects."""
        return KEPT_RECORD + len(self.key or b"") + len(self.value or b"")


def log_events(headers: Iterator[tuple[int, int, int, int]], records: Iterator[Record]) -> Iterator[LogEvent]:
    """Join batch headers (last offset, producer id, attributes, control type) with the records of all data
    batches that could be decoded; both in offset order."""
    record = next(records, None)
    for last_offset, producer_id, attributes, control_type in headers:
        if attributes & ATTRIBUTE_CONTROL:
            if control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
                committed = control_type == ControlRecordType.COMMIT
                yield LogEvent(last_offset, producer_id, committed, None, None)
            continue
        owner = producer_id if attributes & ATTRIBUTE_TRANSACTIONAL else NO_PRODUCER_ID
        while record is not None and record.offset <= last_offset:
            yield LogEvent(record.offset, owner, None, record.key, record.value)
            record = next(records, None)
