"""What a log should not say about its producers, held against each batch before producer state moves on.

A leading broker refuses such batches; one that replays its log only mentions some of them in its own log. So
does this: it tells a callback and changes nothing. A sequence may jump where the log has a hole between the
producer's two batches, since compaction leaves holes.

    sequence_gap                         records of the producer are missing before this batch
    sequence_back                        this batch repeats sequences or goes back behind them
    producer_epoch_back                  data of an incarnation that was fenced before
    marker_epoch_back                    an end marker of an incarnation that was fenced before
    coordinator_epoch_back               an end marker of a coordinator that was replaced before
    non_transactional_in_transaction     plain data of a producer whose transaction is open
    unknown_control_type                 a control batch with a producer id that is no readable end marker

Source: ``ProducerAppendInfo``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from txnkafka._core.scan import BatchHeader
from txnkafka.model import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE
from txnkafka.record.batch_header import ATTRIBUTE_TRANSACTIONAL

if TYPE_CHECKING:
    from txnkafka.storage.log.producer import Producer

__all__ = ["OnAnomaly", "ProducerChecks"]

OnAnomaly = Callable[[str, BatchHeader, str], None]


class ProducerChecks:
    """Compares batches with what is known of their producers."""

    def __init__(self, on_anomaly: OnAnomaly) -> None:
        self._on_anomaly = on_anomaly
        self._behind_holes: list[int] = []  # the first offset behind each hole, ascending
        self._end_offset = NO_OFFSET

    def begin(self, offsets: Iterable[tuple[int, int]]) -> None:
        """Note where offsets are missing, from the base and last offsets of all batches that come next."""
        for base_offset, last_offset in offsets:
            if base_offset > self._end_offset != NO_OFFSET:
                self._behind_holes.append(base_offset)
            self._end_offset = last_offset + 1

    def data(self, producer: Producer, header: BatchHeader) -> None:
        """Check a data batch of a known producer."""
        if header.producer_epoch < producer.producer_epoch:
            self._tell("producer_epoch_back", header, _epochs(producer, header))
        if producer.transaction is not None and not header.attributes & ATTRIBUTE_TRANSACTIONAL:
            text = f"plain data while its transaction from offset {producer.transaction.first_offset} is open"
            self._tell("non_transactional_in_transaction", header, text)
        sequence, expected = header.base_sequence, _expected_sequence(producer, header.producer_epoch)
        if sequence != expected and NO_SEQUENCE not in (sequence, expected):
            self._sequence(producer, header, expected)

    def marker(self, producer: Producer, header: BatchHeader) -> None:
        """Check an end marker of a known producer; that no transaction is open is legal."""
        if header.producer_epoch < producer.producer_epoch:
            self._tell("marker_epoch_back", header, _epochs(producer, header))
        if header.coordinator_epoch < producer.coordinator_epoch:
            text = f"coordinator epoch {header.coordinator_epoch} follows {producer.coordinator_epoch}"
            self._tell("coordinator_epoch_back", header, text)

    def unknown_control(self, header: BatchHeader) -> None:
        """Tell of a control batch that neither commits nor aborts."""
        self._tell("unknown_control_type", header, "the control batch is no readable end marker")

    def _sequence(self, producer: Producer, header: BatchHeader, expected: int) -> None:
        # Sequences run in a circle of 2^31; the half of it ahead is a gap, the other half lies behind.
        ahead = (header.base_sequence - expected) % 2**31 < 2**30
        if ahead and self._hole_between(producer.last_offset, header.base_offset):
            return
        text = f"base sequence {header.base_sequence} where {expected} is next"
        self._tell("sequence_gap" if ahead else "sequence_back", header, text)

    def _hole_between(self, last_offset: int, base_offset: int) -> bool:
        return bisect_right(self._behind_holes, base_offset) > bisect_right(self._behind_holes, last_offset)

    def _tell(self, code: str, header: BatchHeader, text: str) -> None:
        self._on_anomaly(code, header, f"producer {header.producer_id}: {text}")


def _epochs(producer: Producer, header: BatchHeader) -> str:
    return f"producer epoch {header.producer_epoch} follows {producer.producer_epoch}"


def _expected_sequence(producer: Producer, epoch: int) -> int:
    """The base sequence that comes next; none where any may come."""
    if epoch == producer.producer_epoch:
        return producer.next_sequence
    return NO_SEQUENCE if producer.producer_epoch == NO_PRODUCER_EPOCH else 0
