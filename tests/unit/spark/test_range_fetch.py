"""The answers of a broker to the fetch of a range, without a broker: those that a healthy broker rarely
gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.logdir.logs import batch
from txnkafka import TopicPartition
from txnkafka.errors import KafkaError, OffsetOutOfRangeError
from txnkafka.spark.broker.range_fetch import RangeFetch
from txnkafka.spark.broker.source_config import SourceConfig
from txnkafka.spark.log_bounds import OffsetRange
from txnkafka.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

PART = OffsetRange(TopicPartition("orders", 0), 0, 10)


def answered(offset: int, *, committed: bool = True, **row: Any) -> Any:
    fetch = RangeFetch(None, SourceConfig(), PART, committed=committed)  # type: ignore[arg-type]  # not asked
    data = PartitionData(**{"partition_index": 0, "error_code": 0, "high_watermark": 20, **row})
    topics = (FetchableTopicResponse(topic="orders", partitions=(data,)),)
    return fetch._data(offset, FetchResponse(session_id=0, responses=topics))


def test_a_range_whose_last_offsets_are_compacted_ends() -> None:
    """The broker has nothing to give, and will not have: waiting for records would take forever."""
    assert answered(8, last_stable_offset=10, records=b"") is None
    assert answered(8, committed=False, records=None) is None


def test_an_end_that_the_broker_does_not_know_yet_is_asked_for_again() -> None:
    with pytest.raises(KafkaError, match="orders-0 can be read up to offset 9, not up to 10") as caught:
        answered(8, last_stable_offset=9, records=b"")
    assert caught.value.retriable


def test_batches_may_reach_beyond_the_range() -> None:
    found = answered(8, last_stable_offset=20, records=batch(8, 6))
    assert found.end_offset == 14
    assert len(found.batches(8, 10).selection) == 1


def test_errors_of_the_partition() -> None:
    with pytest.raises(OffsetOutOfRangeError, match="offset 3 is not in the log; offsets 0 to 9"):
        answered(3, error_code=1)
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER") as caught:
        answered(3, error_code=6)
    assert caught.value.retriable
