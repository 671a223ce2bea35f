"""``Sequences``: the numbers of the batches that an idempotent producer has sent to one partition.

Source: ``TxnPartitionEntry``, ``TxnPartitionMap``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.client.producer.producer_batch import NO_PRODUCER

if TYPE_CHECKING:
    from txnkafka.client.producer.producer_batch import ProducerBatch
    from txnkafka.model import ProducerIdAndEpoch

_SEQUENCES = 1 << 31  # after the largest they begin again at 0
_HALF = _SEQUENCES // 2
_NONE = -1


class Sequences:
    """``in_flight`` has the batches that have a sequence and no final answer, in order of their sequences.

    ``unresolved`` is the sequence after a batch that expired and may or may not be in the log; until that is
    known, no new batch is sent. None: every sequence is resolved."""

    __slots__ = ("in_flight", "last_acked", "last_offset", "next", "producer", "unresolved")

    def __init__(self) -> None:
        self.producer: ProducerIdAndEpoch = NO_PRODUCER
        self.next = 0
        self.last_acked = _NONE
        self.last_offset = _NONE
        self.in_flight: list[ProducerBatch] = []
        self.unresolved: int | None = None

    def number(self, batch: ProducerBatch) -> None:
        """Give a batch the next sequence."""
        batch.assign(self.producer, self.next)
        self.next = (self.next + batch.count) % _SEQUENCES
        self.in_flight.append(batch)

    def restart(self, producer: ProducerIdAndEpoch) -> None:
        """Number from 0 again, with a new producer epoch, and also the batches in flight."""
        self.producer, self.next, self.last_acked = producer, 0, _NONE
        self.unresolved = None
        in_flight, self.in_flight = self.in_flight, []
        for batch in in_flight:
            self.number(batch)

    def acknowledged(self, batch: ProducerBatch, base_offset: int) -> None:
        """Note that the broker has a batch."""
        last, before = batch.last_sequence, self.last_acked
        if batch.producer == self.producer and (before == _NONE or (last - before) % _SEQUENCES < _HALF):
            self.last_acked = last
        if base_offset != _NONE:
            self.last_offset = max(self.last_offset, base_offset + batch.count - 1)
        self.remove(batch)

    def remove(self, batch: ProducerBatch) -> None:
        """Note that a batch is no longer in flight."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def failed(self, batch: ProducerBatch) -> None:
        """Close the gap that a failed batch leaves: the broker has not taken it, so the batches after it move
        forward (only in a transaction, which will be aborted)."""
        if batch.producer != self.producer:
            return
        self.next = (self.next - batch.count) % _SEQUENCES
        for other in self.in_flight:
            distance = (other.base_sequence - batch.base_sequence) % _SEQUENCES
            if other is not batch and distance < _HALF:
                other.assign(other.producer, (other.base_sequence - batch.count) % _SEQUENCES)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Put the parts of a batch in its place."""
        place = self.in_flight.index(batch)
        self.in_flight[place : place + 1] = parts

    def mark_unresolved(self, batch: ProducerBatch) -> None:
        """Note that a batch expired after it was sent."""
        after = (batch.last_sequence + 1) % _SEQUENCES
        self.unresolved = after if self.unresolved is None else max(self.unresolved, after)

    def is_next(self, sequence: int) -> bool:
        """Return whether a sequence follows the last acknowledged one."""
        return sequence == (self.last_acked + 1) % _SEQUENCES
