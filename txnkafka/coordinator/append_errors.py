"""Error codes for clients whose record could not be appended or made durable; and the size check before the
append.

Source: TransactionStateManager.appendTransactionToLog.
"""

from __future__ import annotations

from typing import Final

from txnkafka.coordinator.txn_events import TransactionRecord
from txnkafka.coordinator.txn_image import ONGOING
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import MessageTooLargeError

__all__ = ["append_error", "encoded_with_room"]

# bytes of a batch around key and value (at most 61 + 17), plus the additional fields in the record of the
# decision: previous epoch, next producer id, and their tags
_AROUND: Final = 78 + 50

APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def append_error(error: ErrorCode) -> ErrorCode:
    """Return the coordinator's error for an error of the log; errors without a row are passed on."""
    return APPEND_ERRORS.get(error, error)


def encoded_with_room(record: TransactionRecord, version: int, limit: int) -> tuple[bytes, bytes | None]:
    """Return key and value of a record.

    Raises MessageTooLargeError for a transaction whose end would not fit into a batch of ``limit`` bytes;
    Kafka accepts it, and such a transaction can never end. Raises SchemaError as ``encoded`` does.
    """
    key, value = record.encoded(version)
    metadata = record.metadata
    if value is not None and metadata is not None and metadata.state == ONGOING:
        size, count = len(key) + len(value), len(metadata.topic_partitions)
        if size > limit - _AROUND:
            raise MessageTooLargeError(
                f"the record of a transaction of {count} partitions has {size} bytes; max.message.bytes is "
                f"{limit}"
            )
    return key, value
