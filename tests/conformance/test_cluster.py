"""``Producer``, ``Consumer`` and ``Admin`` with a cluster of three brokers that are killed in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from tests.conformance.cluster import KafkaCluster
from txnkafka import Admin, Consumer, KafkaError, KafkaTimeoutError, Producer, TopicPartition

PARTITIONS: Final = 6
SETTINGS: Final = {
    "broker.session.timeout.ms": "6000",
    "initial.broker.registration.timeout.ms": "60000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("cluster"), SETTINGS) as cluster:
        yield cluster


def create(cluster: KafkaCluster, *topics: str) -> None:
    """Create topics whose partitions have different leaders, and wait until every broker knows them."""
    with Admin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        for topic in topics:
            assert admin.create_topic(topic, PARTITIONS, 3).replication_factor == 3
    for node in cluster.nodes.values():
        with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
            while not {*topics} <= {topic.name for topic in admin.list_topics()}:
                pass


def values(cluster: KafkaCluster, topic: str, count: int, **settings: Any) -> list[int]:
    """Return the values of a topic, sorted: at least ``count``, and up to its present end."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found: list[int] = []
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", **settings
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while len(found) < count or any(consumer.position(place) < ends[place] for place in places):
            found += [int(record.value or b"") for record in consumer.poll(1_000)]
    return sorted(found)


def test_a_transaction_over_all_leaders(cluster: KafkaCluster) -> None:
    create(cluster, "outcomes")
    with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="outcomes") as producer:
        producer.init_transactions()
        for transaction in range(6):
            producer.begin_transaction()
            for number in range(PARTITIONS):
                producer.send("outcomes", b"%d" % (10 * transaction + number), partition=number)
            producer.flush()
            producer.abort_transaction() if transaction % 2 else producer.commit_transaction()
    committed = [10 * transaction + number for transaction in (0, 2, 4) for number in range(PARTITIONS)]
    assert values(cluster, "outcomes", len(committed)) == committed
    assert len(values(cluster, "outcomes", 0, isolation_level="read_uncommitted")) == 6 * PARTITIONS


class Copying:
    """A thread that fills a topic, and one that copies it in transactions, until ``end``."""

    def __init__(self, cluster: KafkaCluster, protocol: str) -> None:
        self.source, self.target, self.group = (f"{protocol}-{name}" for name in ("in", "out", "copiers"))
        self.acknowledged: list[int] = []
        self.copied = 0
        self.failures: list[BaseException] = []
        self._servers = {"bootstrap_servers": cluster.bootstrap_servers}
        self._protocol = protocol
        self._is_ending = threading.Event()
        create(cluster, self.source, self.target)
        self._threads = [
            threading.Thread(target=self._watched, args=(work,), daemon=True)
            for work in (self._fill, self._copy)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Wait until 100 more records are copied."""
        before = self.copied
        while self.copied < before + 100 and not self.failures:
            self._threads[1].join(0.05)

    def end(self) -> None:
        """Stop the source, and wait until everything is copied."""
        self._is_ending.set()
        for thread in self._threads:
            thread.join(300)
        assert not self.failures
        assert not any(thread.is_alive() for thread in self._threads)

    def _watched(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.failures.append(error)

    def _fill(self) -> None:
        with Producer(self._servers, linger_ms=0) as producer:
            while not self._is_ending.wait(0.01):
                first = len(self.acknowledged)
                sent = [
                    producer.send(self.source, b"%d" % number, partition=number % PARTITIONS)
                    for number in range(first, first + 10)
                ]
                self.acknowledged += [first + place for place, each in enumerate(sent) if each.result()]

    def _copy(self) -> None:
        settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **self._servers}
        group = {"group_id": self.group, "group_protocol": self._protocol}
        with (
            Producer(self._servers, transactional_id=self.group) as producer,
            Consumer(settings, topics=self.source, **group) as consumer,
        ):
            producer.init_transactions()
            while not (self._is_ending.is_set() and self.copied == len(self.acknowledged)):
                records = consumer.poll(1_000, max_records=50)
                try:
                    with producer.transaction():
                        for record in records:
                            assert record.value is not None
                            producer.send(self.target, record.value, partition=record.partition)
                        producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
                except KafkaError as error:
                    if error.fatal:
                        raise
                    for place, offset in consumer.committed(consumer.assignment()).items():
                        consumer.seek(place, offset.offset if offset else 0)
                else:
                    self.copied += len(records)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_record_is_copied_once_while_brokers_are_killed(cluster: KafkaCluster, protocol: str) -> None:
    copying = Copying(cluster, protocol)
    for node in cluster.nodes.values():
        copying.wait()
        node.kill()
        copying.wait()  # the other two brokers take over
        node.start()
    copying.wait()
    copying.end()
    acknowledged = copying.acknowledged
    assert acknowledged == list(range(len(acknowledged)))
    assert values(cluster, copying.source, len(acknowledged)) == acknowledged
    assert values(cluster, copying.target, len(acknowledged)) == acknowledged


def test_calls_wait_for_a_cluster_that_is_down(cluster: KafkaCluster) -> None:
    create(cluster, "down")
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "max_block_ms": 2_000}
    with Producer(settings, transactional_id="down") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("down", b"1", partition=0).result()
        for node in cluster.nodes.values():
            node.kill()
        with pytest.raises(KafkaTimeoutError):
            producer.commit_transaction()
        with Producer(settings, transactional_id="other") as other, pytest.raises(KafkaTimeoutError):
            other.init_transactions()
        with ThreadPoolExecutor(len(cluster.nodes)) as threads:
            list(threads.map(lambda node: node.start(), cluster.nodes.values()))
        while True:
            try:
                producer.commit_transaction()
                break
            except KafkaTimeoutError:
                continue
    assert values(cluster, "down", 1) == [1]
