"""The request and the answer of an append."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.validate import IncomingBatch

__all__ = ["AppendInfo", "AppendRequest"]


class AppendRequest(NamedTuple):
    """One of several batches to append together; the fields are also parameters of
    ``PartitionLog.append``."""

    batch: Buffer
    origin: AppendOrigin = AppendOrigin.CLIENT
    transaction_version: int = -1
    guard: int = NO_GUARD


class AppendInfo(NamedTuple):
    """The answer to an append. The offsets of a duplicate are those of the batch appended before.

    ``log_append_time`` is -1 where the producer's timestamps count, ``leader_epoch`` the epoch of the batch
    in the log (-1: not known). The batch is durable once the recovery point has reached ``durable_at``; for a
    duplicate that may already be the case.
    """

    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    is_duplicate: bool
    leader_epoch: int
    durable_at: int

    @classmethod
    def of_batch(cls, batch: IncomingBatch, log_start_offset: int, leader_epoch: int) -> AppendInfo:
        """Return the answer for a batch whose offsets are assigned."""
        last_offset = batch.last_offset
        return cls(
            batch.base_offset, last_offset, batch.log_append_time, log_start_offset, False, leader_epoch,
            last_offset + 1,
        )  # fmt: skip

    @classmethod
    def of_duplicate(cls, checked: Checked, log_start_offset: int, leader_epoch: int) -> AppendInfo:
        """Return the answer for a batch that the log already contains, or will contain before this answer is
        given."""
        return cls(
            checked.first_offset, checked.last_offset, checked.timestamp, log_start_offset, True,
            leader_epoch, checked.last_offset + 1,
        )  # fmt: skip
