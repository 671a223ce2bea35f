"""What a partition knows of its producers: replayed from batch headers, from a snapshot, or from both.

This is the state behind duplicate detection, fencing and the last stable offset. Replay follows what a broker
does when it loads a log (origin REPLICATION): nothing is refused, the log is right. The same log always gives
the same state, whether it is replayed whole or from any snapshot on.

One thing is better than in Kafka: a batch that the cleaner emptied opens no transaction. The cleaner works
below the last stable offset, so whatever it touched was decided, and a replay must not hold the log there for
ever.

Source: ``ProducerStateManager``, ``ProducerStateEntry``, ``ProducerAppendInfo``; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.scan import BatchIndex
from txnkafka.model import NO_OFFSET, NO_TIMESTAMP, CompletedTxn, ProducerStateEntry
from txnkafka.record.batch_header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_ABORT,
    CONTROL_COMMIT,
)
from txnkafka.storage.formats.headers import headers_with_producer, offsets_of
from txnkafka.storage.log.producer import Producer, Transaction
from txnkafka.storage.log.producer_checks import ProducerChecks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka._core.scan import BatchHeader
    from txnkafka.storage.log.producer_checks import OnAnomaly

__all__ = ["OpenTransaction", "ProducerState"]

_EXPIRATION_MS = 86_400_000  # default of producer.id.expiration.ms


class OpenTransaction(NamedTuple):
    """A transaction without an end marker; records, bytes and first timestamp are of the batches replayed."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    first_timestamp: int | None
    last_timestamp: int
    records: int
    bytes: int


class ProducerState:
    """All producers of a partition up to an offset.

    ``load`` a snapshot (or not), then ``replay`` the batches behind it, segment by segment. Transactions that
    end while replaying gather in ``completed_transactions``, which may be cleared in between.
    ``on_anomaly(code, header, text)`` hears what the log should not say; see ``producer_checks``.
    """

    def __init__(self, on_anomaly: OnAnomaly | None = None) -> None:
        self.completed_transactions: list[CompletedTxn] = []
        self._producers: dict[int, Producer] = {}
        self._open: dict[int, Transaction] = {}  # by producer id, in the order of the log
        self._checks = None if on_anomaly is None else ProducerChecks(on_anomaly)

    def load(self, entries: Iterable[ProducerStateEntry]) -> None:
        """Start from the entries of a snapshot instead of from nothing."""
        self._producers.clear()
        self._open.clear()
        # In the order of the log, in which replay would have met the transactions.
        for entry in sorted(entries, key=lambda entry: entry.current_txn_first_offset):
            self._producers[entry.producer_id] = producer = Producer.of(entry)
            if producer.transaction is not None:
                self._open[entry.producer_id] = producer.transaction

    def replay(self, batches: BatchIndex | Iterable[BatchHeader], start_offset: int = 0) -> None:
        """Take in the next batches of the log; those that end below ``start_offset`` are passed over.

        That is the snapshot's offset, or the log start offset, which may lie inside a transaction: then the
        first batch that is left counts as the transaction's beginning.
        """
        if self._checks is not None:
            batches = batches if isinstance(batches, BatchIndex) else list(batches)
            self._checks.begin(offsets_of(batches))
        for header in headers_with_producer(batches):
            if header.last_offset < start_offset:
                continue
            if header.attributes & ATTRIBUTE_CONTROL:
                self._control(header)
            else:
                self._data(header)

    def _data(self, header: BatchHeader) -> None:
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        elif self._checks is not None:
            self._checks.data(producer, header)
        producer.append(header)
        if producer.transaction is None:
            if not header.attributes & ATTRIBUTE_TRANSACTIONAL:
                return
            if not header.count:
                producer.note_emptied(header.base_offset)
                return
            transaction = Transaction(header.base_offset, _first_timestamp(header))
            producer.transaction = self._open[header.producer_id] = transaction
        producer.transaction.records += header.count
        producer.transaction.size += header.size

    def _control(self, header: BatchHeader) -> None:
        if not header.count:  # the cleaner emptied the marker, which says nothing any more
            return
        if header.control_type not in (CONTROL_ABORT, CONTROL_COMMIT):
            if self._checks is not None:
                self._checks.unknown_control(header)
            return
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        elif self._checks is not None:
            self._checks.marker(producer, header)
        self._complete(producer, header)
        producer.mark(header)

    def _complete(self, producer: Producer, marker: BatchHeader) -> None:
        first_offset = producer.end_transaction()
        self._open.pop(marker.producer_id, None)
        if first_offset == NO_OFFSET:
            return
        oldest = next(iter(self._open.values()), None)
        last_stable_offset = marker.last_offset + 1 if oldest is None else oldest.first_offset
        is_aborted = marker.control_type == CONTROL_ABORT
        self.completed_transactions.append(
            CompletedTxn(marker.producer_id, first_offset, marker.base_offset, is_aborted, last_stable_offset)
        )

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """Transactions without an end marker, the oldest first."""
        found = [self._open_transaction(*item) for item in self._open.items()]
        return sorted(found, key=lambda transaction: transaction.first_offset)

    def _open_transaction(self, producer_id: int, transaction: Transaction) -> OpenTransaction:
        producer = self._producers[producer_id]
        return OpenTransaction(
            producer_id,
            producer.producer_epoch,
            transaction.first_offset,
            transaction.first_timestamp,
            producer.last_timestamp,
            transaction.records,
            transaction.size,
        )

    def entries(self) -> list[ProducerStateEntry]:
        """Every producer, by id."""
        return [producer.entry(producer_id) for producer_id, producer in sorted(self._producers.items())]

    def producers(self, now_ms: int, expiration_ms: int = _EXPIRATION_MS) -> list[ProducerStateEntry]:
        """The producers that DescribeProducers shows at ``now_ms``: those idle for too long are forgotten."""
        return [
            entry
            for entry in self.entries()
            if entry.has_open_transaction or now_ms - entry.last_timestamp < expiration_ms
        ]

    def first_unstable_offset(
        self, log_start_offset: int, *, high_watermark: int | None = None
    ) -> int | None:
        """Where the oldest undecided transaction begins, or the log start offset if that is later.

        With a high watermark, a transaction whose end marker is not below it is undecided too. Kafka moves
        the offset back to the base of the batch that holds it, which needs the log.
        """
        first_offsets = [transaction.first_offset for transaction in self._open.values()]
        if high_watermark is not None:
            first_offsets += [
                completed.first_offset
                for completed in self.completed_transactions
                if completed.last_offset >= high_watermark
            ]
        return max(min(first_offsets), log_start_offset) if first_offsets else None


def _first_timestamp(header: BatchHeader) -> int | None:
    if header.attributes & ATTRIBUTE_LOG_APPEND_TIME:
        return header.max_timestamp
    # With a delete horizon the base timestamp is that horizon.
    if header.attributes & ATTRIBUTE_DELETE_HORIZON or header.base_timestamp == NO_TIMESTAMP:
        return None
    return header.base_timestamp
