"""Fetches over scripted answers: sessions, versions, errors, damage and truncation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.consumer.scripts import PARTITION, WAIT, ScriptedBroker
from txnkafka.client.consumer import LogTruncationError
from txnkafka.client.promise import Promise
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import CorruptRecordError, KafkaError
from txnkafka.model import TopicPartition
from txnkafka.record.builder import build_batch
from txnkafka.wire.messages.fetch import EpochEndOffset, PartitionData


def values(records: list[Any]) -> list[bytes]:
    return [each.value for each in records]


def test_a_session_names_only_what_changes() -> None:
    broker = ScriptedBroker(2)
    broker.session_id = 7
    broker.put(0, b"a", b"b")
    broker.put(2, b"c")
    consumer = broker.consumer(0, 1)
    assert values(consumer.poll(WAIT)) == [b"a", b"b"]
    assert values(consumer.poll(WAIT)) == [b"c"]
    consumer.assign([PARTITION])
    consumer.poll(2_000)
    first, second, third, *rest = [each.message for each in broker.transport.sent("Fetch")]
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert [each.partition for each in first.topics[0].partitions] == [0, 1]
    assert (second.session_id, second.session_epoch) == (7, 1)
    assert [(each.partition, each.fetch_offset) for each in second.topics[0].partitions] == [(0, 2)]
    assert (third.session_id, third.session_epoch) == (7, 2)
    assert [(each.partition, each.fetch_offset) for each in third.topics[0].partitions] == [(0, 3)]
    forgotten = [each for message in rest for each in message.forgotten_topics_data]
    assert [each.partitions for each in forgotten] == [(1,)]


@pytest.mark.parametrize(
    "error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
)
def test_a_lost_session_begins_again(error: ErrorCode) -> None:
    broker = ScriptedBroker()
    broker.session_id = 7
    broker.put(0, b"a")
    consumer = broker.consumer()
    assert values(consumer.poll(WAIT)) == [b"a"]
    consumer.poll(600)
    broker.top_error = error
    broker.put(1, b"b")
    assert values(consumer.poll(WAIT)) == [b"b"]
    assert broker.transport.sent("Fetch")[-1].message.session_epoch == 1
    epochs = [each.message.session_epoch for each in broker.transport.sent("Fetch")]
    assert epochs.count(0) == 2


@pytest.mark.parametrize("version", [4, 11, 12])
def test_old_brokers_get_names(version: int) -> None:
    broker = ScriptedBroker(versions={"Fetch": version})
    broker.put(0, b"a")
    consumer = broker.consumer()
    assert values(consumer.poll(WAIT)) == [b"a"]
    request = broker.transport.sent("Fetch")[0]
    assert request.version == version
    assert request.message.topics[0].topic == "orders"


@pytest.mark.parametrize(
    ("error", "refreshes"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, True),
        (ErrorCode.FENCED_LEADER_EPOCH, True),
        (ErrorCode.KAFKA_STORAGE_ERROR, True),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, False),
        (ErrorCode.OFFSET_NOT_AVAILABLE, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
    ],
)
def test_an_error_that_passes_is_retried_after_a_pause(error: ErrorCode, refreshes: bool) -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a")
    errors = [error]
    broker.answer = lambda number, wanted: (
        PartitionData(partition_index=0, error_code=errors.pop(), high_watermark=-1) if errors else None
    )
    consumer = broker.consumer()
    lookups = len(broker.transport.sent("Metadata"))
    begin = broker.transport.reactor.now_ms()
    assert values(consumer.poll(WAIT)) == [b"a"]
    assert broker.transport.reactor.now_ms() - begin >= 100
    assert len(broker.transport.sent("Metadata")) - lookups == 1 + refreshes


@pytest.mark.parametrize("error", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE])
def test_an_error_that_stays_is_raised(error: ErrorCode) -> None:
    broker = ScriptedBroker()
    broker.answer = lambda number, wanted: PartitionData(
        partition_index=0, error_code=error, high_watermark=-1
    )
    consumer = broker.consumer()
    for _ in range(2):
        with pytest.raises(KafkaError, match=f"orders-0: {error.name}"):
            consumer.poll(WAIT)


def test_an_answer_that_nobody_expects_fails_poll_once_for_each_call() -> None:
    broker = ScriptedBroker()
    broker.transport.answers["Fetch"] = lambda request: object()
    consumer = broker.consumer()
    for _ in range(2):
        with pytest.raises(AttributeError):
            consumer.poll(WAIT)


def test_a_lost_connection_is_retried() -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a")
    fetch = broker.transport.answers["Fetch"]
    failures = [1]

    def once(request: Any) -> Any:
        if failures:
            failures.pop()
            request.fail()
            return None
        return fetch(request)

    broker.transport.answers["Fetch"] = once
    assert values(broker.consumer().poll(WAIT)) == [b"a"]


def test_records_follow_a_new_leader() -> None:
    broker = ScriptedBroker(nodes=2)
    broker.put(0, b"a")
    consumer = broker.consumer()
    assert values(consumer.poll(WAIT)) == [b"a"]
    broker.transport.leaders[PARTITION] = 1
    moved = [True]
    broker.answer = lambda number, wanted: (
        PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1)
        if moved and moved.pop()
        else None
    )
    broker.put(1, b"b")
    assert values(consumer.poll(WAIT)) == [b"b"]
    assert broker.transport.sent("Fetch")[-2].node_id == 1 or broker.transport.sent("Fetch")[-1].node_id == 1


def damaged(broker: ScriptedBroker, offset: int) -> None:
    broker.put(offset, b"damaged")
    data = bytearray(broker.logs[0][offset])
    data[-2] ^= 1
    broker.logs[0][offset] = bytes(data)


def test_damage_is_raised_after_the_records_before_it_until_a_seek() -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a", b"b")
    damaged(broker, 2)
    broker.put(3, b"c")
    broker.logs[0][0] += broker.logs[0].pop(2) + broker.logs[0][3]
    consumer = broker.consumer()
    assert values(consumer.poll(WAIT)) == [b"a", b"b"]
    for _ in range(3):
        with pytest.raises(CorruptRecordError, match=r"orders-0.*offset 2.*seek to a later offset") as raised:
            consumer.poll(WAIT)
        assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 0, 2)
        assert consumer.position(PARTITION) == 2
    consumer.seek(PARTITION, 3)
    assert values(consumer.poll(WAIT)) == [b"c"]


def test_damage_is_raised_by_columns_too() -> None:
    broker = ScriptedBroker()
    damaged(broker, 0)
    consumer = broker.consumer()
    with pytest.raises(CorruptRecordError, match="offset 0"):
        consumer.poll_columns(WAIT)


def test_bytes_that_are_no_batch_are_damage() -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a")
    broker.logs[0][0] += b"\xff" * 100
    consumer = broker.consumer()
    assert values(consumer.poll(WAIT)) == [b"a"]
    with pytest.raises(CorruptRecordError, match=r"orders-0.*offset 1"):
        consumer.poll(WAIT)


def test_a_batch_that_is_cut_off_is_fetched_again() -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a")
    broker.put(1, b"b")
    broker.logs[0][0] += broker.logs[0][1][:50]
    consumer = broker.consumer()
    assert values(consumer.poll(WAIT)) == [b"a"]
    assert values(consumer.poll(WAIT)) == [b"b"]


def test_a_damaged_partition_does_not_hide_the_others() -> None:
    broker = ScriptedBroker(2)
    damaged(broker, 0)
    broker.put(0, b"a", number=1)
    consumer = broker.consumer(0, 1)
    assert values(consumer.poll(WAIT)) == [b"a"]
    with pytest.raises(CorruptRecordError):
        consumer.poll(WAIT)
    consumer.pause([PARTITION])
    broker.put(1, b"b", number=1)
    assert values(consumer.poll(WAIT)) == [b"b"]


def diverging(broker: ScriptedBroker, epoch: int, end_offset: int) -> None:
    """Answer a Fetch after records of epoch 5 like a leader whose log differs."""

    def answer(number: int, wanted: Any) -> PartitionData | None:
        if wanted.last_fetched_epoch != 5:
            return None
        where = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return PartitionData(partition_index=0, high_watermark=10, diverging_epoch=where)

    broker.answer = answer


def test_a_truncated_log_continues_where_it_differs() -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a", b"b", b"c", epoch=5)
    consumer = broker.consumer()
    assert len(consumer.poll(WAIT)) == 3
    diverging(broker, 4, 1)
    consumer.poll(600)
    broker.put(1, b"B", epoch=6)
    assert values(consumer.poll(WAIT)) == [b"B"]


def test_a_truncated_log_is_an_error_without_a_policy() -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a", b"b", b"c", epoch=5)
    consumer = broker.consumer(auto_offset_reset="none")
    consumer.seek(PARTITION, 0)
    assert len(consumer.poll(WAIT)) == 3
    diverging(broker, 4, 1)
    with pytest.raises(LogTruncationError, match="truncated to offset 1, below the position 3") as raised:
        consumer.poll(WAIT)  # after the end of the Fetch that waits
    assert (raised.value.offset, raised.value.diverged_offset) == (3, 1)
    consumer.seek(PARTITION, 1)
    broker.put(1, b"B", epoch=6)
    assert values(consumer.poll(WAIT)) == [b"B"]


def test_after_hidden_records_the_next_ones_are_fetched_at_once() -> None:
    broker = ScriptedBroker()
    record = (b"\0\0\0\1", b"\0\0\0\0\0\0", 5)
    marker = build_batch([record], producer_id=1, producer_epoch=0, transactional=True, control=True)
    broker.logs[0][0] = bytes(marker)
    broker.put(1, b"a")
    broker.delay_ms = 7
    consumer = broker.consumer()
    begin = broker.transport.reactor.now_ms()
    assert values(consumer.poll(WAIT)) == [b"a"]
    assert broker.transport.reactor.now_ms() - begin == 14


def test_a_seek_drops_the_answer_to_an_older_fetch() -> None:
    broker = ScriptedBroker()
    broker.put(0, b"a")
    broker.put(5, b"f")
    consumer = broker.consumer()
    assert values(consumer.poll(WAIT)) == [b"a"]  # and the Fetch at offset 1 waits
    consumer.seek(PARTITION, 5)
    broker.put(1, b"b")
    assert values(consumer.poll(WAIT)) == [b"f"]
    assert consumer.position(PARTITION) == 6


@pytest.mark.parametrize("change", ["seek", "assign", "topic"])
def test_a_fetch_has_what_is_wanted_when_its_connection_is_made(change: str) -> None:
    broker = ScriptedBroker()
    for offset in (0, 5):
        broker.put(offset, b"%d" % offset)
    connect, waiting = broker.transport.connect, [Promise[Any]()]
    broker.transport.connect = lambda node, timeout_ms: (  # type: ignore[method-assign]
        waiting[0] if node.node_id == 0 else connect(node, timeout_ms)
    )
    consumer = broker.consumer()
    consumer.seek(PARTITION, 0)
    assert consumer.poll(50) == []
    if change == "seek":
        consumer.seek(PARTITION, 5)
    elif change == "assign":
        consumer.assign([])
    else:
        consumer._core.cluster.topics.clear()
    with consumer._reactor:
        waiting[0].set(connect(broker.transport.nodes[0], 0).result())
    consumer.assign([PARTITION])
    expected = b"5" if change == "seek" else b"0"
    assert values(consumer.poll(WAIT)) == [expected]
    offsets = [each.message.topics[0].partitions[0].fetch_offset for each in broker.transport.sent("Fetch")]
    assert offsets[0] == int(expected)


def test_a_fetch_waits_until_all_data_of_its_broker_are_consumed() -> None:
    broker = ScriptedBroker(2)
    for number in (0, 1):
        broker.put(0, b"a", b"b", number=number)
    consumer = broker.consumer(0, 1, max_poll_records=2)
    assert len(consumer.poll(WAIT)) == 2
    assert len(broker.transport.sent("Fetch")) == 1
    assert len(consumer.poll(WAIT)) == 2
    assert len(broker.transport.sent("Fetch")) == 2
    (topic,) = broker.transport.sent("Fetch")[1].message.topics
    assert {TopicPartition("orders", each.partition) for each in topic.partitions} == set(
        consumer.positions()
    )
