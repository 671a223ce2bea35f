"""The keeper of an embedded broker does what no caller waits for."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from txnkafka import Broker, TopicPartition
from txnkafka.env import running_seconds

ORDERS = TopicPartition("orders", 0)
SECONDS = 20


def until(condition: Callable[[], bool]) -> None:
    """Wait without a call of the broker."""
    deadline, pause = running_seconds() + SECONDS, Event()
    while not condition():
        assert running_seconds() < deadline
        pause.wait(0.01)


def test_a_transaction_times_out_while_no_thread_calls_the_broker() -> None:
    interval = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}
    with Broker.in_memory(**interval) as broker:
        producer = broker.producer(transactional_id="shop", transaction_timeout_ms=300)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"x").result()
        log = broker._reactor.engine.logs[ORDERS]
        assert log.last_stable_offset == 0
        until(lambda: log.last_stable_offset == 2)


def test_records_are_sent_after_their_linger_time_while_no_thread_waits() -> None:
    with Broker.in_memory() as broker, broker.producer(linger_ms=20) as producer:
        producer.partitions_for("orders")
        future = producer.send("orders", b"x")
        until(future.done)
        assert future.result().offset == 0


def test_a_consumer_without_a_group_has_all_partitions() -> None:
    with Broker.in_memory() as broker:
        broker.admin().create_topic("orders", partitions=2)
        with broker.consumer("orders") as consumer, broker.producer() as producer:
            assert consumer.assignment() == {ORDERS, TopicPartition("orders", 1)}
            producer.send("orders", b"x", partition=1)
            assert [record.value for record in consumer.poll(20_000)] == [b"x"]


def test_a_server_is_woken_before_the_keeper_sleeps() -> None:
    """Timers of clients may answer requests of the server, whose event loop sleeps."""
    events: list[str] = []
    with Broker.in_memory() as broker:
        broker.admin().list_topics()
        reactor = broker._reactor
        with reactor:
            reactor.on_leave = lambda: events.append("leave")
            reactor.call_at(reactor.now_ms() + 30, lambda: events.append("timer"))
        until(lambda: "timer" in events and events[-1] == "leave")
        reactor.on_leave = None
