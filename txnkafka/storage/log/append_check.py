"""Checks a batch before it is appended: whether it is valid, and whether its producer's state allows it.

Source: ``UnifiedLog.analyzeAndValidateRecords``, ``UnifiedLog.analyzeAndValidateProducerState``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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
    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.producer_table import ProducerTable
    from txnkafka._core.validate import BatchRules, IncomingBatch
    from txnkafka.config import LogConfig
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.log_resources import LogResources
    from txnkafka.storage.log.log_segments import LogSegments
    from txnkafka.storage.log.log_validator import AppendOrigin
    from txnkafka.storage.log.verification import PendingVerification, VerificationState

LAST_OFFSET = 2**63 - 2  # the following log end must also fit into 64 bits


class Appendable(Protocol):
    """The parts of a log that a batch is checked against. ``rules`` are derived from ``config``."""

    topic_partition: TopicPartition
    config: LogConfig
    rules: BatchRules
    resources: LogResources
    segments: LogSegments
    producers: ProducerTable
    verification: VerificationState

    @property
    def log_end_offset(self) -> int: ...


def validate(
    log: Appendable, batch: IncomingBatch, origin: AppendOrigin, now_ms: int, end_offset: int
) -> None:
    """Validate a batch to be appended at ``end_offset``, unless it is already accepted. Raises ProduceError
    or CorruptRecordError with the partition's name."""
    try:
        if not batch.is_accepted:
            log.resources.validator.finish(batch, log.config, log.rules, origin, now_ms)
    except CorruptRecordError as error:
        raise as_refusal(error, log.topic_partition) from None
    except ProduceError as error:
        refused = type(error)(f"{log.topic_partition}: {error}")
        refused.record_errors = error.record_errors
        raise refused from error
    if batch.last_offset_delta > LAST_OFFSET - end_offset:
        raise InvalidRecordError(
            f"{log.topic_partition} has no offsets left for the batch: it ends at "
            f"{end_offset}, the last offset there can be is {LAST_OFFSET}"
        )
    if batch.size > log.config.segment_bytes:
        raise RecordListTooLargeError(
            f"{log.topic_partition}: the batch has {batch.size} bytes, segment.bytes is "
            f"{log.config.segment_bytes}"
        )


def check(
    log: Appendable, batch: IncomingBatch, origin: AppendOrigin, transaction_version: int, guard: int
) -> Checked:
    """Check a batch against the state of its producer. Before refusing its sequence, search older batches of
    the producer in the log: the batch may duplicate one. Raises CorruptRecordError, and KafkaStorageError if
    they cannot be read, which does not fence the log."""
    pending = log.verification.pending(batch.producer_id)

    def checked_now() -> Checked:
        return check_producer(
            log.producers, batch, origin, transaction_version, pending,
            verified=is_verified(log, pending, guard), log_end_offset=log.log_end_offset,
        )  # fmt: skip

    checked = checked_now()
    if checked.code and checked.search_below != NO_OFFSET:
        try:
            search_older_batches(log.segments, log.producers, batch.producer_id, checked.search_below)
        except OSError as error:
            where = f"{log.topic_partition}: older batches of producer {batch.producer_id}"
            raise KafkaStorageError(f"{where} cannot be read: {error}") from error
        checked = checked_now()
    return checked


def is_verified(log: Appendable, pending: PendingVerification | None, guard: int) -> bool:
    """Return True if a transactional batch with this guard may begin a transaction."""
    if not log.config.transaction_partition_verification_enable:
        return True
    return pending is not None and pending.matches(guard)
