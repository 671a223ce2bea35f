"""The bytes of one partition in a Fetch response: whole batches, and the part of a batch at the end."""

from __future__ import annotations

import pytest

from tests.unit.broker.node import batch_of
from txnkafka.client.consumer.fetched_data import FetchedData
from txnkafka.errors import CorruptRecordError
from txnkafka.wire.messages.fetch import PartitionData


def fetched(records: bytes) -> FetchedData:
    return FetchedData(0, -1, PartitionData(partition_index=0, records=records), is_committed=True)


def test_a_response_may_end_in_any_byte_of_its_last_batch() -> None:
    """A limit of bytes cuts the batch: sometimes within the leading zeros of its base offset."""
    first, second = (bytes(batch_of(b"value", base_offset=offset)) for offset in (0, 1))
    for cut in range(len(second)):
        data = fetched(first + second[:cut])
        assert (data.damage, data.end_offset) == (None, 1), f"{cut} bytes of the second batch"


@pytest.mark.parametrize("tail", [bytes(12), bytes(100), b"\x00" * 16 + b"\x09"])
def test_other_bytes_after_the_last_batch_are_damage(tail: bytes) -> None:
    data = fetched(bytes(batch_of(b"value")) + tail)
    assert isinstance(data.damage, CorruptRecordError)


def test_a_response_without_a_whole_batch_is_damage() -> None:
    assert isinstance(fetched(bytes(4)).damage, CorruptRecordError)
