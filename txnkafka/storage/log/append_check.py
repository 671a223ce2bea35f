"""What surrounds the write of an append: is the batch sound, does its producer's state allow it, and what
becomes of the log when the write fails.

Source: ``UnifiedLog.analyzeAndValidateRecords``, ``UnifiedLog.analyzeAndValidateProducerState``.
"""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, NoReturn

from txnkafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaStorageError,
    ProduceError,
    RecordListTooLargeError,
)
from txnkafka.model import NO_OFFSET
from txnkafka.storage.log.older_batches import search_older_batches
from txnkafka.storage.log.producer_errors import as_refusal
from txnkafka.storage.log.verification import check_producer

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.validate import IncomingBatch
    from txnkafka.storage.log.log_validator import AppendOrigin
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.log.verification import PendingVerification

__all__ = ["check", "is_verified", "validate", "write_failed"]

LAST_OFFSET = 2**63 - 2  # the log end behind it is a number of 64 bits, too
_DISK_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


def validate(
    log: PartitionLog, batch: Buffer, origin: AppendOrigin, now_ms: int, end_offset: int
) -> IncomingBatch:
    """The batch as it will be in the log from ``end_offset`` on. Raises ProduceError or CorruptRecordError
    that names the partition."""
    try:
        incoming = log.resources.validator.validate(batch, log.config, log.rules, origin, now_ms)
    except CorruptRecordError as error:
        raise as_refusal(error, log.topic_partition) from None
    except ProduceError as error:
        refused = type(error)(f"{log.topic_partition}: {error}")
        refused.record_errors = error.record_errors
        raise refused from error
    if incoming.last_offset_delta > LAST_OFFSET - end_offset:
        raise InvalidRecordError(
            f"{log.topic_partition} has no offsets left for the batch: it ends at "
            f"{end_offset}, the last offset there can be is {LAST_OFFSET}"
        )
    if incoming.size > log.config.segment_bytes:
        raise RecordListTooLargeError(
            f"{log.topic_partition}: the batch has {incoming.size} bytes, segment.bytes is "
            f"{log.config.segment_bytes}"
        )
    return incoming


def check(
    log: PartitionLog, batch: IncomingBatch, origin: AppendOrigin, transaction_version: int, guard: int
) -> Checked:
    """The verdict of the producers' state on the batch. Before a sequence is refused, the older batches of
    its producer are searched in the log: the batch may be a duplicate of one of them."""
    pending = log.verification.pending(batch.producer_id)
    verified = is_verified(log, pending, guard)
    checked = check_producer(
        log.producers, batch, origin, transaction_version, pending, verified=verified
    )
    if checked.code and checked.search_below != NO_OFFSET:
        search_older_batches(log, log.producers, batch.producer_id, checked.search_below)
        checked = check_producer(
            log.producers, batch, origin, transaction_version, pending, verified=verified
        )
    return checked


def is_verified(log: PartitionLog, pending: PendingVerification | None, guard: int) -> bool:
    """Whether a transactional batch that comes with this guard may begin a transaction."""
    if not log.config.transaction_partition_verification_enable:
        return True
    return pending is not None and pending.matches(guard)


def write_failed(log: PartitionLog, error: OSError) -> NoReturn:
    """Raise KafkaStorageError for a write that failed. When the disk is full and what was written can be
    taken back, the log goes on; else it is fenced."""
    if error.errno in _DISK_FULL and log.fenced is None:
        with contextlib.suppress(OSError):
            log.active.trim()
            raise KafkaStorageError(
                f"the disk of {log.directory} is full: nothing was appended to {log.topic_partition}"
            ) from error
    log.fence(error)
    log.check_usable()
    raise AssertionError("a fenced log is not usable")
