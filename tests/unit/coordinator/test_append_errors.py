"""The room that a record of an open transaction leaves for the record of its end."""

from __future__ import annotations

from itertools import count, product

import pytest

from txnkafka._core.encode import encode_batch
from txnkafka.coordinator.txn.transaction_partition import encoded_with_room
from txnkafka.coordinator.txn.txn_image import PREPARE_ABORT, PREPARE_COMMIT, prepared, record_of
from txnkafka.errors import MessageTooLargeError
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

LARGE_ID, NOW = (1 << 63) - 1, 1_700_000_000_000


def ongoing(partitions: int, client_version: int, last_epoch: int) -> TransactionMetadata:
    return TransactionMetadata(
        "x", LARGE_ID, -1, -1, 32766, -1, 60_000, TransactionState.ONGOING,
        frozenset(TopicPartition("t", number) for number in range(partitions)), NOW, NOW, client_version,
        last_epoch,
    )  # fmt: skip


def smallest_limit(metadata: TransactionMetadata, version: int) -> int:
    """The smallest ``max.message.bytes`` with which the record of the open transaction is accepted."""
    key, value = record_of(metadata).encoded(version)
    for limit in count(len(key) + len(value or b"")):
        try:
            encoded_with_room(record_of(metadata), version, limit)
        except MessageTooLargeError:
            continue
        return limit
    raise AssertionError


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_the_record_of_the_end_fits_where_the_record_before_just_fits(state: TransactionState) -> None:
    """The decision adds the epoch before it and the producer id that follows, with their tags."""
    for partitions, client_version, version, last_epoch, next_id in product(
        (1, 200), (0, 2), (0, 1, 2), (-1, 32765), (-1, LARGE_ID)
    ):
        metadata = ongoing(partitions, client_version, last_epoch)
        limit = smallest_limit(metadata, version)
        decision = prepared(
            metadata, state, now_ms=NOW + 1, client_transaction_version=client_version,
            next_producer_id=next_id,
        )  # fmt: skip
        key, value = record_of(decision).encoded(version)
        assert len(encode_batch([(key, value, NOW)])) <= limit, (partitions, client_version, version)
