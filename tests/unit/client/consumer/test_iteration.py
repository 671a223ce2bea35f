"""Iteration over a consumer: the position within a loop, and loops that end early."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.unit.client.consumer.readers import WAIT, reader, take
from txnkafka import Broker
from txnkafka.errors import ClosedError
from txnkafka.model import TopicPartition


def test_within_a_loop_the_position_is_after_the_record(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, group_id="loop") as consumer:
        for record in consumer:
            assert consumer.position(ten) == record.offset + 1
            assert consumer.lag(ten) == 9 - record.offset
            if record.offset == 3:
                consumer.commit()
            if record.offset == 9:
                break
        committed = consumer.committed([ten])[ten]
        assert committed is not None
        assert committed.offset == 4
        assert committed.leader_epoch == 0
        assert consumer.positions()[ten].offset == 10


def test_a_new_loop_and_poll_continue_a_loop_that_was_left(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, consumer_timeout_ms=0) as consumer:
        assert [each.offset for each in islice(consumer, 3)] == [0, 1, 2]
        assert [each.offset for each in islice(consumer, 2)] == [3, 4]
        assert [each.offset for each in consumer.poll(0)] == [5, 6, 7, 8, 9]
        assert list(consumer) == []


def test_a_loop_can_seek(broker: Broker, ten: TopicPartition) -> None:
    offsets = []
    with reader(broker, ten) as consumer:
        for record in consumer:
            offsets.append(record.offset)
            if offsets == [0, 1]:
                consumer.seek(ten, 8)
            if offsets[-1] == 9:
                break
    assert offsets == [0, 1, 8, 9]


def test_a_loop_that_pauses_gets_the_rest_after_resume(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, consumer_timeout_ms=0) as consumer:
        loop = iter(consumer)
        assert [next(loop).offset for _ in range(4)] == [0, 1, 2, 3]
        consumer.pause([ten])
        assert consumer.paused() == {ten}
        assert list(loop) == []
        assert consumer.position(ten) == 4
        consumer.resume([ten])
        assert [each.offset for each in take(consumer, 6)] == [4, 5, 6, 7, 8, 9]


def test_a_loop_ends_when_the_consumer_is_closed(broker: Broker, ten: TopicPartition) -> None:
    consumer = reader(broker, ten)
    loop = iter(consumer)
    next(loop)
    consumer.close()
    with pytest.raises(ClosedError):
        next(loop)


def test_a_paused_partition_keeps_its_position(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, max_poll_records=4) as consumer:
        consumer.poll(WAIT)
        consumer.pause([ten])
        assert consumer.poll(0) == []
        consumer.resume([ten])
        assert [each.offset for each in consumer.poll(WAIT)] == [4, 5, 6, 7]
