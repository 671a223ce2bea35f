"""``TransactionPartition``: the transactional ids of one partition of ``__transaction_state``.

Only ``replay`` changes it, both for records that became durable and for loaded ones. So the state after N
records is the state that a restart after them finds.

Source: TransactionStateManager.loadTransactionMetadata, addLoadedTransactionsToCache, completeTransitionTo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from txnkafka.coordinator.txn.txn_events import TransactionRecord
from txnkafka.coordinator.txn.txn_image import ONGOING
from txnkafka.errors import MessageTooLargeError
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.records import TransactionMetadata, decode_transaction_log

KEY_VERSION: Final = b"\0\0"
VALUE_VERSIONS: Final = (b"\0\0", b"\0\1")
# bytes of a batch around key and value (at most 61 + 17), and of the fields that only the record of the
# decision has: previous epoch, next producer id, and their tags
_AROUND: Final = 78 + 50


class TransactionPartition:
    """States by transactional id, and the ids with an open transaction. ``coordinator_epoch`` is the
    leader epoch of the partition; markers carry it."""

    def __init__(self, coordinator_epoch: int) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.metadata: dict[str, TransactionMetadata] = {}
        self.ongoing: dict[str, None] = {}  # in the order in which they opened

    def replay(self, record: TransactionRecord) -> None:
        """Apply the next record of the log."""
        transactional_id, metadata = record.transactional_id, record.metadata
        if metadata is None:
            self.metadata.pop(transactional_id, None)
        else:
            self.metadata[transactional_id] = metadata
        if metadata is not None and metadata.state == ONGOING:
            self.ongoing[transactional_id] = None
        else:
            self.ongoing.pop(transactional_id, None)

    def open_in_partitions(self) -> Iterator[tuple[TopicPartition, ProducerIdAndEpoch]]:
        """Yield the partitions with an open transaction, and its producer. Any other transaction open in a
        partition after an unclean start, once all markers are written, has no owner and must be aborted."""
        for transactional_id in self.ongoing:
            metadata = self.metadata[transactional_id]
            producer = ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch)
            for partition in metadata.topic_partitions:
                yield partition, producer


def loaded_records(
    records: Iterable[tuple[bytes | None, bytes | None]],
) -> tuple[list[TransactionRecord], list[str]]:
    """Return the last record of each transactional id, from the keys and values of a whole log, and the
    errors of unreadable ones.

    A key or value of an unknown version is skipped, so that an older value counts, as in Kafka. A damaged one
    is skipped too, where Kafka stops loading. Only last records are decoded."""
    last: dict[bytes, bytes | None] = {}
    problems: list[str] = []
    for key, value in records:
        if key is None or key[:2] != KEY_VERSION or (value is not None and value[:2] not in VALUE_VERSIONS):
            problems.append(f"unknown version: key {(key or b'').hex()}")
        else:
            last[key] = value
    found = []
    for key, value in last.items():
        decoded = decode_transaction_log(key, value)
        metadata = TransactionMetadata.of(decoded)
        if decoded.key is None or (metadata is None and value is not None):
            problems.append(f"{decoded.error}: key {key.hex()}")
        else:
            found.append(TransactionRecord(decoded.key["transactional_id"], metadata))
    return found, problems


def encoded_with_room(record: TransactionRecord, version: int, limit: int) -> tuple[bytes, bytes | None]:
    """Key and value of a record. Raises MessageTooLargeError for a transaction whose end would not fit into a
    batch of ``limit`` bytes: Kafka accepts it, and it can never end. Raises SchemaError as ``encoded``."""
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
