"""Verifies transactions with their coordinator before their first batch is appended (KIP-890).

A request of a producer without an open transaction starts a verification and asks the coordinator. If the
coordinator knows the transaction, the batch is appended with the verification's guard. An end marker that
arrives before the append invalidates the guard, and the batch is refused. With transaction version 2, the
request to the coordinator also adds the partition to the transaction, and markers carry the next epoch.

Kafka removes the entry while it validates a batch whose write may still fail; here it stays until the batch
is appended. Source: ``VerificationStateEntry``, ``UnifiedLog.maybeStartTransactionVerification``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import InvalidProducerEpochError
from txnkafka.record.batch_header import ATTRIBUTE_TRANSACTIONAL

if TYPE_CHECKING:
    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.validate import IncomingBatch
    from txnkafka.storage.log.log_validator import AppendOrigin

MOST_HELD = 10_000  # per partition
NO_GUARD = 0  # for requests without verification; matches no pending verification
_guards = itertools.count(1)


@dataclass(slots=True)
class PendingVerification:
    """The verification of one producer. No batch with a sequence above ``lowest_sequence`` may be appended
    before the waiting ones. ``is_held``: no verification is running; a batch could not be written, and the
    client will retry it."""

    guard: int
    started_ms: int
    lowest_sequence: int
    producer_epoch: int
    supports_epoch_bump: bool
    is_held: bool = False

    def matches(self, guard: int) -> bool:
        """Return True if a batch with this guard is verified."""
        return guard != NO_GUARD and guard == self.guard

    def join(self, sequence: int, producer_epoch: int) -> None:
        """Add another request of the producer, possibly in a new epoch, that waits for the same answer."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


def check_producer(
    producers: ProducerTable,
    batch: IncomingBatch,
    origin: AppendOrigin,
    transaction_version: int,
    pending: PendingVerification | None,
    *,
    verified: bool,
    log_end_offset: int,
) -> Checked:
    """Check a batch against the producer table and the pending verification of its producer, if any. In a log
    that never had a record, each producer begins with sequence 0: any other sequence follows a batch that has
    not arrived yet (KAFKA-15591, Kafka 4.5)."""
    lowest_sequence = None if pending is None else pending.lowest_sequence
    if log_end_offset == 0:
        lowest_sequence = 0
    supports_epoch_bump = pending is not None and pending.supports_epoch_bump
    return producers.check(batch, origin, transaction_version, verified, lowest_sequence, supports_epoch_bump)


class VerificationState:
    """The verifications of one partition, by producer id."""

    def __init__(self) -> None:
        self._pending: dict[int, PendingVerification] = {}

    @property
    def has_pending(self) -> bool:
        """True if any producer has a verification."""
        return bool(self._pending)

    def __len__(self) -> int:
        return len(self._pending)

    def maybe_start(
        self,
        producers: ProducerTable,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> int:
        """Start a verification; return the guard for the append after the coordinator's confirmation, or
        ``NO_GUARD`` if the transaction is already open. Raises ``InvalidProducerEpochError``."""
        known = producers.epochs(producer_id)
        if known is not None:
            epoch, _, is_open = known
            if producer_epoch < epoch:
                raise InvalidProducerEpochError(
                    f"producer {producer_id}: epoch {producer_epoch} is older than epoch {epoch}, which came "
                    "before"
                )
            if is_open and epoch == producer_epoch:
                return NO_GUARD
        pending = self._pending.get(producer_id)
        if pending is None:
            pending = self._pending[producer_id] = PendingVerification(
                next(_guards), now_ms, sequence, producer_epoch, supports_epoch_bump
            )
        else:
            pending.join(sequence, producer_epoch)
            if pending.is_held:
                pending.is_held, pending.supports_epoch_bump = False, supports_epoch_bump
        return pending.guard

    def hold(self, producers: ProducerTable, batch: IncomingBatch, now_ms: int) -> None:
        """Record a batch that could not be written, for example on a full disk. Otherwise a later sequence of
        a producer with an unknown transaction would be accepted, and this batch then be refused for ever."""
        known = producers.epochs(batch.producer_id)
        if known is not None and known[0] >= 0:  # then the table knows the next sequence
            return
        pending = self._pending.get(batch.producer_id)
        if pending is not None:
            pending.join(batch.base_sequence, batch.producer_epoch)
        elif len(self._pending) < MOST_HELD:
            self._pending[batch.producer_id] = PendingVerification(
                next(_guards), now_ms, batch.base_sequence, batch.producer_epoch, False, is_held=True
            )

    def pending(self, producer_id: int) -> PendingVerification | None:
        """Return the producer's verification, or None; its last two fields are arguments of
        ``ProducerTable.check``."""
        return self._pending.get(producer_id)

    def on_append(self, batch: IncomingBatch) -> None:
        """End the verification of a producer after the append of a batch or a marker."""
        if self.ends_with(batch):
            del self._pending[batch.producer_id]

    def ends_with(self, batch: IncomingBatch) -> bool:
        """Return True if a batch ends the verification of its producer. A non-transactional batch ends only a
        held entry.

        A marker of transaction version 2 with the entry's epoch does not: it ended the transaction before the
        verified one."""
        pending = self._pending.get(batch.producer_id)
        if pending is None:
            return False
        if pending.is_held or not batch.attributes & ATTRIBUTE_TRANSACTIONAL:
            return pending.is_held
        is_next = pending.supports_epoch_bump and batch.producer_epoch == pending.producer_epoch
        return not (batch.is_control and is_next)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove expired verifications."""
        for producer_id, pending in list(self._pending.items()):
            if now_ms - pending.started_ms >= expiration_ms:
                del self._pending[producer_id]

    def clear(self) -> None:
        """Remove all verifications."""
        self._pending.clear()
