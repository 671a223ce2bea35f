"""Property: a broker that loses, delays, refuses and repeats gets the records of each partition once,
in order.

The broker answers held requests in any order of steps: a request is appended and answered, appended with a
lost answer, lost before it was appended, or refused with a retriable error. Requests of one connection are
executed in order, as a broker does; after a lost request the connection is closed, and all its requests end.
A broker may execute requests of a closed connection later.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.unit.client.fakes import Request
from tests.unit.client.producer.fake_broker import FakeBroker, producer_over
from txnkafka.client.producer import Producer
from txnkafka.model import TopicPartition

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2), st.integers(1, 4)),
        st.tuples(st.sampled_from(["answer", "lose the answer", "lose the request"]), st.just(0), st.just(0)),
        st.tuples(st.just("late"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("refuse"), st.sampled_from([3, 6, 7, 10, 19]), st.just(0)),
        st.tuples(st.just("time"), st.sampled_from([1, 50, 500, 5000]), st.just(0)),
    ),
    min_size=20,
    max_size=80,
)


class Network:
    """Holds the Produce requests of a connection, and executes them in order. ``late`` has the requests that
    have timed out: the broker may still execute them."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.held: list[Request] = []
        self.late: list[Request] = []
        broker.transport.answers["Produce"] = self.hold

    def hold(self, request: Request) -> None:
        def ended() -> None:
            if request in self.held:
                self.held.remove(request)
                self.late.append(request)

        request.promise.on_done(ended)
        self.held.append(request)

    def execute_late(self, number: int) -> None:
        if number < len(self.late):
            self.broker.produce(self.late.pop(number))

    def execute(self, *, code: int = 0, answers: bool = True, arrives: bool = True) -> None:
        if not self.held:
            return
        request = self.held.pop(0)
        if code:
            fits = self.broker.has_any(request) or self.has_one(request)
            code = 7 if code == 10 and fits else code
            self.broker.failures["Produce"].append(code)
            if code == 10:
                self.late.clear()  # it would refuse these, too
        response = self.broker.produce(request) if arrives else None
        self.broker.failures["Produce"].clear()
        if answers and arrives:
            request.reply(response)
        else:
            self.end_connection(request)
        self.broker.transport.reactor.settle()

    def has_one(self, request: Request) -> bool:
        """Return whether a batch has one record: if it were too large, nothing could be split."""
        return any(len(batch.records) == 1 for batch in self.broker.batches(request))

    def end_connection(self, first: Request) -> None:
        others, self.held = self.held, []
        self.late += others
        for request in (first, *others):
            request.fail()


def play(producer: Producer, broker: FakeBroker, steps: list[Any]) -> dict[TopicPartition, list[bytes]]:
    """Run the steps, then a broker that answers; return the records that were sent."""
    network, expected, number = Network(broker), defaultdict(list), 0
    for kind, argument, count in steps:
        if kind == "send":
            for _ in range(count):
                value = b"%d" % number
                producer.send("stock", value, partition=argument)
                expected[TopicPartition("stock", argument)].append(value)
                number += 1
        elif kind == "time":
            broker.transport.reactor.settle(argument)
        elif kind == "refuse":
            network.execute(code=argument)
        elif kind == "late":
            network.execute_late(argument)
        else:
            network.execute(answers=kind == "answer", arrives=kind != "lose the request")
    broker.transport.answers["Produce"] = broker.produce
    while network.held:
        network.execute()
    return expected


@settings(max_examples=3 * EXAMPLES)
@given(STEPS, st.sampled_from([100, 16_384]), st.integers(1, 5))
def test_each_record_is_written_once_in_order(steps: list[Any], batch_size: int, in_flight: int) -> None:
    producer, broker = producer_over(
        topics={"stock": 3}, batch_size=batch_size, linger_ms=2, request_timeout_ms=10_000,
        delivery_timeout_ms=100_000_000, max_in_flight_requests_per_connection=in_flight,
    )  # fmt: skip
    expected = play(producer, broker, steps)
    producer.flush()
    for partition, values in expected.items():
        assert broker.values(*partition) == values
    assert producer._core.accumulator.incomplete == {}
    assert producer._core.accumulator._free == producer.config.buffer_memory
    assert producer._core.sender._queues == {}
    assert sum(producer._core.sender._in_flight.values()) == 0


@settings(max_examples=EXAMPLES)
@given(STEPS)
def test_a_transaction_that_was_committed_is_whole(steps: list[Any]) -> None:
    producer, broker = producer_over(
        topics={"stock": 3}, batch_size=100, linger_ms=2, request_timeout_ms=10_000,
        delivery_timeout_ms=100_000_000, transactional_id="shop",
    )  # fmt: skip
    expected: dict[TopicPartition, list[bytes]] = {}
    with producer.transaction():
        expected = play(producer, broker, steps)
    for partition, values in expected.items():
        assert broker.values(*partition) == values


@settings(max_examples=3 * EXAMPLES)
@given(STEPS, st.sampled_from([100, 16_384]), st.integers(1, 5))
def test_no_record_is_written_twice_or_before_an_earlier_one(
    steps: list[Any], batch_size: int, in_flight: int
) -> None:
    """With a short delivery timeout records may fail, and then the log may have them or not."""
    producer, broker = producer_over(
        topics={"stock": 3}, batch_size=batch_size, linger_ms=2, request_timeout_ms=700,
        delivery_timeout_ms=1500, max_in_flight_requests_per_connection=in_flight,
    )  # fmt: skip
    futures: list[Any] = []
    send = producer.send

    def noted(*arguments: Any, **options: Any) -> Any:
        futures.append((options["partition"], arguments[1], send(*arguments, **options)))

    producer.send = noted  # type: ignore[method-assign]
    play(producer, broker, steps)
    producer.flush()
    for partition in range(3):
        written = [int(value or b"") for value in broker.values("stock", partition)]
        assert written == sorted(set(written))
        for number, value, future in futures:
            if number == partition and future.exception() is None:
                assert broker.values("stock", partition)[future.result().offset] == value
    assert producer._core.accumulator.incomplete == {}
