"""Property: for any interleaving of producers, commits, aborts, restarts and crashes of an embedded broker, a
read_committed consumer gets each committed transaction whole, once, in order, and nothing else."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from txnkafka import Broker, Consumer, Producer, TopicPartition

PARTITIONS = [TopicPartition("orders", number) for number in range(2)]
SETTINGS = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.integers(0, 1)),
        st.tuples(st.sampled_from(["commit", "abort", "replace"]), st.integers(0, 1), st.just(0)),
        st.tuples(st.sampled_from(["read", "restart", "crash"]), st.just(0), st.just(0)),
    ),
    min_size=3,
    max_size=14,
)


class World:
    """A broker with two producers, and the records that a consumer should get."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent = 0
        self.open: list[list[tuple[int, bytes]]] = [[], []]  # of each producer: partitions and values
        self.committed: list[list[tuple[int, bytes]]] = []  # transactions, in order of their commits
        self.start()
        self.broker.admin().create_topic("orders", partitions=2)

    def start(self) -> None:
        self.broker = Broker.open(self.path, **SETTINGS)  # type: ignore[arg-type]
        self.producers = [self.new_producer(number) for number in range(2)]
        self.open = [[], []]

    def new_producer(self, number: int) -> Producer:
        producer = self.broker.producer(transactional_id=f"producer-{number}", linger_ms=0)
        producer.init_transactions()
        return producer

    def send(self, number: int, partition: int) -> None:
        if not self.open[number]:
            self.producers[number].begin_transaction()
        value = b"%d" % self.sent
        self.sent += 1
        self.producers[number].send("orders", value, partition=partition)
        self.open[number].append((partition, value))

    def commit(self, number: int, _: int) -> None:
        if self.open[number]:
            self.producers[number].commit_transaction()
            self.committed.append(self.open[number])
            self.open[number] = []

    def abort(self, number: int, _: int) -> None:
        if self.open[number]:
            self.producers[number].abort_transaction()
            self.open[number] = []

    def replace(self, number: int, _: int) -> None:
        """Another process takes the transactional id: the open transaction is aborted."""
        self.producers[number] = self.new_producer(number)
        self.open[number] = []

    def restart(self, *_: int) -> None:
        self.broker.close()
        self.start()

    def crash(self, *_: int) -> None:
        """The files are as the death of the process leaves them."""
        reactor = self.broker._reactor
        reactor.close()
        reactor.engine.abandon()
        self.broker._engine = None
        self.start()

    def read(self, *_: int) -> None:
        wanted = {value for transaction in self.committed for _, value in transaction}
        found: dict[int, list[bytes]] = {0: [], 1: []}
        for number in range(2):  # open transactions hold later records back
            if self.open[number]:
                self.abort(number, 0)
        with self.broker.consumer() as consumer:
            consumer.assign(PARTITIONS)
            for record in _all(consumer):
                found[record[0]].append(record[1])
        assert sorted(found[0] + found[1]) == sorted(wanted)
        for partition, values in found.items():
            for transaction in self.committed:
                of_partition = [value for to, value in transaction if to == partition]
                assert [value for value in values if value in of_partition] == of_partition


def _all(consumer: Consumer) -> list[tuple[int, bytes]]:
    """Return the records up to the ends of both partitions."""
    ends, found = consumer.end_offsets(PARTITIONS), list[tuple[int, bytes]]()
    while any(consumer.position(partition) < ends[partition] for partition in PARTITIONS):
        found += [(record.partition, record.value or b"") for record in consumer.poll(1000)]
    return found


@settings(max_examples=max(5, EXAMPLES // 4))
@given(steps=STEPS)
def test_committed_transactions_are_whole_and_nothing_else_is_visible(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    path = tmp_path_factory.mktemp("data")
    world = World(path / "broker")
    try:
        for name, *arguments in [*steps, ("read", 0, 0)]:
            getattr(world, name)(*arguments)
    finally:
        world.broker.close()
        rmtree(path)
