"""Records of a consumer over a broker in process: as objects, columns and Arrow tables."""

from __future__ import annotations

import pickle
from itertools import islice, pairwise
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.consumer.readers import WAIT, reader, take
from tests.unit.client.consumer.wire_client import Transactions, WireClient
from txnkafka import Broker
from txnkafka.client.consumer import Consumer, ConsumerRecord, WakeupError
from txnkafka.errors import ClosedError, DecodeError, IllegalStateError
from txnkafka.model import TimestampType, TopicPartition

TIME = 1_700_000_000_000


def test_a_record_has_all_fields(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    headers = [("a", b"1"), ("a", None), ("\u00e9", b"")]
    wire.write(partition, [(b"key", None, TIME, headers), (None, b"", TIME + 1)], partition_leader_epoch=9)
    with reader(broker, partition) as consumer:
        first, second = take(consumer, 2)
    assert (first.topic, first.partition, first.offset, first.timestamp) == (topic, 0, 0, TIME)
    assert (first.key, first.value, first.headers) == (b"key", None, tuple(headers))
    assert first.timestamp_type is TimestampType.CREATE_TIME
    assert first.leader_epoch == 0
    assert (second.key, second.value, second.headers, second.timestamp) == (None, b"", (), TIME + 1)
    assert pickle.loads(pickle.dumps(first)) == first != second
    assert repr(second) == (
        f"ConsumerRecord(topic='{topic}', partition=0, offset=1, timestamp={TIME + 1}, key=None, value=b'')"
    )


def test_a_record_can_be_made_for_tests() -> None:
    record = ConsumerRecord("orders", 1, 5, key=b"k", value=[1], headers=[("h", None)], leader_epoch=2)
    assert (record.timestamp, record.timestamp_type, record.leader_epoch) == (
        -1,
        TimestampType.CREATE_TIME,
        2,
    )
    assert hash(record) == hash(ConsumerRecord("orders", 1, 5))
    with pytest.raises(AttributeError):
        record.value = b""  # type: ignore[misc]


def test_aborted_and_open_transactions_are_hidden(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    one, other = wire.begin(f"{topic}-1"), wire.begin(f"{topic}-2")
    one.write(partition, b"aborted")
    other.write(partition, b"committed")
    one.end(commit=False)
    other.end(commit=True)
    other.write(partition, b"open")
    wire.values(partition, b"after")
    with reader(broker, partition) as consumer:
        assert [each.value for each in take(consumer, 1)] == [b"committed"]
        assert consumer.position(partition) == 4  # after both markers, before the open transaction
    with reader(broker, partition, isolation_level="read_uncommitted") as consumer:
        values = [each.value for each in take(consumer, 4)]
        assert values == [b"aborted", b"committed", b"open", b"after"]
        assert consumer.position(partition) == 6
    other.end(commit=False)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(-1, 2), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("end"), st.integers(0, 2), st.booleans(), st.just(0)),
    ),
    max_size=25,
)


class Model:
    """The values of each partition, as the log has them: with the transaction that wrote them, or None."""

    def __init__(self, wire: WireClient, topic: str) -> None:
        self.wire, self.topic = wire, topic
        self.log: list[list[tuple[bytes, list[str] | None]]] = [[], []]
        self.producers: dict[int, Transactions] = {}
        self.states: dict[int, list[str]] = {}  # open transactions

    def run(self, event: tuple[Any, ...]) -> None:
        name, number, choice, count = event
        if name == "end":
            if number in self.states:
                self.producers[number].end(commit=choice)
                self.states.pop(number).append("committed" if choice else "aborted")
            return
        partition = TopicPartition(self.topic, choice)
        values = [f"{len(self.log[choice]) + i}".encode() for i in range(count)]
        if number < 0:
            self.wire.values(partition, *values)
            self.log[choice] += [(value, None) for value in values]
            return
        if number not in self.producers:
            self.producers[number] = self.wire.begin(f"{self.topic}-{number}")
        state = self.states.setdefault(number, [])
        self.producers[number].write(partition, *values)
        self.log[choice] += [(value, state) for value in values]

    def finish(self) -> None:
        for number in list(self.states):
            self.run(("end", number, False, 0))

    def visible(self, number: int) -> list[bytes]:
        found = []
        for value, state in self.log[number]:
            if state == []:
                break  # the last stable offset
            if state is None or state == ["committed"]:
                found.append(value)
        return found


@given(events=EVENTS, most=st.integers(1, 7), bytes_=st.sampled_from([1, 200, 1 << 20]))
def test_a_consumer_reads_exactly_the_committed_records(
    broker: Broker, wire: WireClient, events: list[Any], most: int, bytes_: int
) -> None:
    topic = f"model-{len(broker._reactor.engine.logs)}"
    wire.create(topic, 2)
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    model = Model(wire, topic)
    for event in events:
        model.run(event)
    with Consumer(
        auto_offset_reset="earliest", max_poll_records=most, max_partition_fetch_bytes=bytes_,
        transport=broker._transport,
    ) as consumer:  # fmt: skip
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found: list[list[bytes]] = [[], []]
        while any(consumer.position(each) < ends[each] for each in partitions):
            some = consumer.poll(5)  # nothing comes if only hidden records are left
            assert len(some) <= most
            for record in some:
                found[record.partition].append(record.value)
        assert found == [model.visible(0), model.visible(1)]
    model.finish()


def test_a_poll_has_at_most_max_poll_records_in_order(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic, 2)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    for partition in partitions:
        for start in range(0, 30, 3):
            wire.values(partition, *(str(start + i).encode() for i in range(3)))
    with reader(broker, *partitions, max_poll_records=7) as consumer:
        polls = [consumer.poll(WAIT) for _ in range(8)]
        assert len(consumer.poll(WAIT, max_records=1)) == 1
        polls += [take(consumer, 59 - sum(map(len, polls)))]
    assert max(map(len, polls[:-1])) == 7
    for partition in partitions:
        offsets = [each.offset for some in polls for each in some if each.partition == partition.partition]
        assert offsets == sorted(offsets)
    assert len({(each.partition, each.offset) for some in polls for each in some}) == 59


def test_columns_and_arrow_have_the_same_records(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    wire.write(partition, [(b"k%d" % i, b"v" * i, TIME + i, [("h", b"x")] * (i % 3)) for i in range(50)])
    wire.write(partition, [(None, None, TIME)], compression="lz4")
    with reader(broker, partition) as consumer:
        records = take(consumer, 51)
        consumer.seek_to_beginning(partition)
        columns = consumer.poll_columns(WAIT)
        consumer.seek(partition, 0)
        table = consumer.poll_arrow(WAIT)
        consumer.seek(partition, 50)
        narrow = consumer.poll_arrow(WAIT, columns=["offset", "value"])
        assert consumer.position(partition) == 51
        assert consumer.poll_arrow(0).num_rows == 0
    assert sum(len(each) for _, each in columns) == 51
    assert {key for key, _ in columns} == {partition}
    assert memoryview(columns[-1][1].offsets)[-1] == 50
    assert table["key"].to_pylist() == [each.key for each in records]
    assert table["value"].to_pylist() == [each.value for each in records]
    assert table["offset"].to_pylist() == list(range(51))
    assert [len(each) for each in table["headers"].to_pylist()] == [len(each.headers) for each in records]
    assert narrow.to_pylist() == [{"offset": 50, "value": None}]


def test_the_memory_of_a_table_is_used_again_only_after_its_end(
    broker: Broker, wire: WireClient, topic: str
) -> None:
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    with reader(broker, partition) as consumer:
        kept = []
        for number in range(6):
            wire.values(partition, *(b"%d-%d" % (number, i) for i in range(100)))
            kept.append(consumer.poll_arrow(WAIT))
        spares = consumer._core.reader._spares
        assert len(spares) == 6
        assert all(columns.in_use for columns in spares)
        for number, table in enumerate(kept):
            assert table["value"].to_pylist() == [b"%d-%d" % (number, i) for i in range(100)]
        kept.clear()
        del table
        wire.values(partition, b"more")
        assert consumer.poll_arrow(WAIT)["value"].to_pylist() == [b"more"]
        assert len(spares) == 6  # none was added


def test_polls_of_several_kinds_continue_each_other(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    wire.values(partition, *(str(number).encode() for number in range(20)))
    with reader(broker, partition, max_poll_records=5) as consumer:
        assert [each.offset for each in consumer.poll(WAIT)] == [0, 1, 2, 3, 4]
        assert [each.offset for each in islice(consumer, 2)] == [5, 6]
        assert consumer.poll_arrow(WAIT)["offset"].to_pylist() == list(range(7, 20))


def test_deserializers_make_keys_and_values(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    wire.write(partition, [(b"1", b"2", TIME), (None, b"3", TIME), (b"4", None, TIME), (b"5", b"x", TIME)])
    wire.values(partition, b"6")
    with Consumer(
        auto_offset_reset="earliest", key_deserializer=bytes.decode, value_deserializer=int,
        transport=broker._transport,
    ) as consumer:  # fmt: skip
        consumer.assign([partition])
        found = [(each.key, each.value) for each in consumer.poll(WAIT)]
        assert found == [("1", 2), (None, 3), ("4", None)]
        for _ in range(2):
            with pytest.raises(
                DecodeError, match=f"{topic}-0, offset 3: the value cannot be decoded: ValueError"
            ):
                consumer.poll(WAIT)
            assert consumer.position(partition) == 3
        consumer.seek(partition, 4)
        assert [each.value for each in consumer.poll(WAIT)] == [6]


def test_wakeup_ends_a_poll_once(broker: Broker, ten: TopicPartition) -> None:
    with reader(broker, ten, auto_offset_reset="latest") as consumer:
        waker = Thread(target=consumer.wakeup)
        waker.start()
        with pytest.raises(WakeupError):
            consumer.poll(WAIT)
        waker.join()
        assert consumer.poll(0) == []


def test_a_second_thread_is_refused(broker: Broker, ten: TopicPartition) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            consumer.poll(0)
        except IllegalStateError as error:
            errors.append(error)

    with reader(broker, ten) as consumer:
        with consumer._caller:
            thread = Thread(target=run)
            thread.start()
            thread.join()
        assert len(consumer.poll(WAIT)) == 10
    assert "another thread is in a method of this consumer" in str(errors[0])


def test_an_interrupted_poll_loses_no_records(
    broker: Broker, ten: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reader(broker, ten, max_poll_records=4) as consumer:
        assert len(consumer.poll(WAIT)) == 4
        wait = consumer._reactor.wait

        def interrupted(task: Any) -> Any:
            wait(task)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(consumer._reactor, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(WAIT)
        assert consumer.position(ten) == 4
        assert [each.offset for each in take(consumer, 6)] == [4, 5, 6, 7, 8, 9]


def test_a_consumer_without_partitions_or_after_close_says_what_to_do(broker: Broker) -> None:
    consumer = Consumer(transport=broker._transport)
    with pytest.raises(IllegalStateError, match="call subscribe or assign before poll"):
        consumer.poll(0)
    with pytest.raises(IllegalStateError, match="t-0 is not assigned"):
        consumer.position(TopicPartition("t", 0))
    with pytest.raises(IllegalStateError, match=r"subscribe needs group\.id"):
        consumer.subscribe(["t"])
    consumer.close()
    consumer.close()
    assert repr(consumer) == "<Consumer 'txnkafka' closed>"
    with pytest.raises(ClosedError):
        consumer.poll(0)


def test_topics_without_a_group_are_assigned(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic, 3)
    with Consumer(topics=topic, transport=broker._transport) as consumer:
        assert consumer.assignment() == {TopicPartition(topic, number) for number in range(3)}
        assert consumer.partitions_for(topic) == (0, 1, 2)


def test_every_partition_has_its_turn(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic, 2)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    for _ in range(20):
        for partition in partitions:
            wire.values(partition, b"x" * 100)
    with reader(broker, *partitions, max_partition_fetch_bytes=200, max_poll_records=1) as consumer:
        order = [each.partition for _ in range(30) for each in consumer.poll(WAIT)]
    runs = [one for one, other in pairwise(order) if one != other]
    assert len(runs) > 5
