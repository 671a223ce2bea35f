"""Positions, offsets and commits over a broker in process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.consumer.wire_client import WireClient
from txnkafka import Broker
from txnkafka.client.consumer import Consumer, NoOffsetForPartitionError
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError, OffsetOutOfRangeError
from txnkafka.model import TopicPartition

TIME = 1_700_000_000_000
WAIT = 10_000


def reader(broker: Broker, *partitions: TopicPartition, **settings: Any) -> Consumer:
    consumer = Consumer(settings, transport=broker._transport)
    consumer.assign(partitions)
    return consumer


@pytest.fixture
def ten(broker: Broker, wire: WireClient, topic: str) -> TopicPartition:
    """A partition with ten records, a second apart."""
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    wire.write(partition, [(None, b"%d" % i, TIME + 1_000 * i) for i in range(10)])
    return partition


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 0), ("latest", 10), ("by_duration:PT1S", 10)])
def test_a_new_position_follows_the_policy(
    broker: Broker, ten: TopicPartition, policy: str, offset: int
) -> None:
    with reader(broker, ten, auto_offset_reset=policy) as consumer:
        assert consumer.position(ten) == offset


def test_a_duration_counts_back_from_now(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic)
    partition, now_ms = TopicPartition(topic, 0), broker._reactor.clock.now_ms()
    wire.write(partition, [(None, b"", now_ms - minutes * 60_000) for minutes in (120, 60, 1)])
    with reader(broker, partition, auto_offset_reset="by_duration:PT1H30M") as consumer:
        assert consumer.position(partition) == 1


def test_without_a_policy_a_position_is_needed(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, auto_offset_reset="none", group_id=ten.topic) as consumer:
        for _ in range(2):
            with pytest.raises(
                NoOffsetForPartitionError, match=f"{ten}: no committed offset in group"
            ) as raised:
                consumer.poll(WAIT)
            assert raised.value.partitions == (ten,)
        consumer.seek(ten, 7)
        assert [each.offset for each in consumer.poll(WAIT)] == [7, 8, 9]


def test_an_offset_out_of_range_is_reset_or_refused(
    broker: Broker, wire: WireClient, ten: TopicPartition
) -> None:
    wire.delete_before(ten, 4)
    with reader(broker, ten, auto_offset_reset="earliest") as consumer:
        consumer.seek(ten, 2)
        assert consumer.poll(WAIT)[0].offset == 4
        consumer.seek(ten, 11)
        assert consumer.poll(WAIT)[0].offset == 4
        assert consumer.beginning_offsets([ten]) == {ten: 4}
    with reader(broker, ten, auto_offset_reset="none") as consumer:
        consumer.seek(ten, 2)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError, match=f"{ten}: offset 2 is out of range"):
                consumer.poll(WAIT)
        consumer.seek_to_beginning(ten)
        assert consumer.poll(WAIT)[0].offset == 4


def test_seeks(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten) as consumer:
        consumer.seek_to_beginning()
        assert consumer.position(ten) == 0
        assert len(consumer.poll(WAIT)) == 10
        consumer.seek_to_end(ten)
        assert consumer.position(ten) == 10
        consumer.seek(ten, OffsetAndMetadata(6, "", 0))
        assert [each.offset for each in consumer.poll(WAIT)] == [6, 7, 8, 9]
        with pytest.raises(ValueError, match="an offset is 0 or more"):
            consumer.seek(ten, -1)
        with pytest.raises(IllegalStateError, match="other-0 is not assigned"):
            consumer.seek(TopicPartition("other", 0), 1)


def test_offsets_for_times(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten) as consumer:
        found = consumer.offsets_for_times({ten: TIME + 2_001})[ten]
        assert found == (3, TIME + 3_000, 0)
        assert consumer.offsets_for_times({ten: TIME + 10_000}) == {ten: None}
        with pytest.raises(ValueError, match="looks like seconds"):
            consumer.offsets_for_times({ten: TIME // 1_000})


@pytest.mark.parametrize(("level", "end"), [("read_committed", 10), ("read_uncommitted", 11)])
def test_end_and_lag_stop_at_the_last_stable_offset(
    broker: Broker, wire: WireClient, ten: TopicPartition, level: str, end: int
) -> None:
    transaction = wire.begin(ten.topic)
    transaction.write(ten, b"open")
    with reader(
        broker, ten, isolation_level=level, auto_offset_reset="earliest", max_poll_records=4
    ) as consumer:
        assert consumer.end_offsets([ten]) == {ten: end}
        assert consumer.lag(ten) == end  # looked up
        consumer.poll(WAIT)
        assert consumer.lag(ten) == end - 4  # from the response
    transaction.end(commit=False)


def test_an_unknown_topic_has_no_offsets(broker: Broker) -> None:
    unknown = TopicPartition("no-such-topic", 0)
    with (
        Consumer(allow_auto_create_topics=False, transport=broker._transport) as consumer,
        pytest.raises(KafkaTimeoutError, match="the lookup of offsets of no-such-topic-0 failed for 300 ms"),
    ):
        consumer.end_offsets([unknown], timeout_ms=300)


# Commits


def test_commits_are_found_again(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, group_id=ten.topic, enable_auto_commit=False) as consumer:
        assert consumer.committed([ten]) == {ten: None}
        consumer.commit({ten: OffsetAndMetadata(3, "three", 0)})
        assert consumer.committed([ten]) == {ten: OffsetAndMetadata(3, "three", 0)}
        consumer.commit({ten: 5})
    with reader(broker, ten, group_id=ten.topic, enable_auto_commit=False) as consumer:
        assert consumer.position(ten) == 5
        assert len(consumer.poll(WAIT)) == 5
        consumer.commit()
        assert consumer.committed([ten]) == {ten: OffsetAndMetadata(10, "", 0)}
        assert consumer.group_metadata() == (ten.topic, -1, "", None)


def test_commit_async_calls_back(broker: Broker, ten: TopicPartition) -> None:
    calls: list[tuple[Any, KafkaError | None]] = []
    with reader(broker, ten, group_id=ten.topic, enable_auto_commit=False) as consumer:
        consumer.commit_async({ten: 1}, callback=lambda offsets, error: calls.append((offsets, error)))
        consumer.commit_async({ten: 2}, callback=lambda offsets, error: calls.append((offsets, error)))
        consumer.commit({ten: 3})
        assert calls == [({ten: OffsetAndMetadata(offset)}, None) for offset in (1, 2)]
        assert consumer.committed([ten]) == {ten: OffsetAndMetadata(3)}


def test_positions_are_committed_automatically(broker: Broker, ten: TopicPartition) -> None:
    settings = {"group_id": ten.topic, "auto_offset_reset": "earliest", "max_poll_records": 3}
    with reader(broker, ten, auto_commit_interval_ms=0, **settings) as consumer:
        assert len(consumer.poll(WAIT)) == 3
        assert consumer.committed([ten]) == {ten: None}  # these may still be processed
        assert len(consumer.poll(WAIT)) == 3
        assert consumer.committed([ten]) == {ten: OffsetAndMetadata(3, "", 0)}
        consumer.assign([])
        assert consumer.committed([ten]) == {ten: OffsetAndMetadata(6, "", 0)}
        consumer.assign([ten])
        next(iter(consumer))
    with reader(broker, ten, **settings) as consumer:
        assert consumer.position(ten) == 7  # closing has committed what the loop had got


def test_commits_need_a_group(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten) as consumer:
        for call in (consumer.commit, consumer.group_metadata, lambda: consumer.committed([ten])):
            with pytest.raises(IllegalStateError, match=r"group\.id is not set"):
                call()


def test_assign_and_subscribe_exclude_each_other(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, group_id=ten.topic) as consumer:
        with pytest.raises(IllegalStateError, match="subscribe after assign"):
            consumer.subscribe([ten.topic])
        consumer.unsubscribe()
        with pytest.raises(ValueError, match="either topics or a pattern"):
            consumer.subscribe([])
        consumer.subscribe([ten.topic])
        with pytest.raises(IllegalStateError, match="assign after subscribe"):
            consumer.assign([ten])
