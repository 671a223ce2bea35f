"""``Producer``, ``Consumer`` and ``Admin`` with a cluster of three brokers that are killed in turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_record_is_copied_once_while_brokers_are_killed(cluster: KafkaCluster, protocol: str) -> None:
    source, target, group = f"{protocol}-in", f"{protocol}-out", f"{protocol}-copiers"
    create(cluster, source, target)
    acknowledged: list[int] = []
    copied = [0]
    failures: list[BaseException] = []
    kills_are_over = threading.Event()

    def fill() -> None:
        with Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer:
            while not kills_are_over.wait(0.01):
                first = len(acknowledged)
                sent = [
                    producer.send(source, b"%d" % number, partition=number % PARTITIONS)
                    for number in range(first, first + 10)
                ]
                acknowledged.extend(first + place for place, future in enumerate(sent) if future.result())

    def copy() -> None:
        with (
            Consumer(
                topics=source,
                bootstrap_servers=cluster.bootstrap_servers,
                group_id=group,
                group_protocol=protocol,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer,
            Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=group) as producer,
        ):
            while not (kills_are_over.is_set() and copied[0] == len(acknowledged)):
                records = consumer.poll(1_000, max_records=50)
                try:
                    with producer.transaction():
                        for record in records:
                            assert record.value is not None
                            producer.send(target, record.value, partition=record.partition)
                        producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
                except KafkaError as error:
                    if error.fatal:
                        raise
                    for place, offset in consumer.committed(consumer.assignment()).items():
                        consumer.seek(place, offset.offset if offset else 0)
                else:
                    copied[0] += len(records)

    def watched(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    def wait_for_copies() -> None:
        before = copied[0]
        while copied[0] < before + 100 and not failures:
            threads[1].join(0.05)

    threads = [threading.Thread(target=watched, args=(work,), daemon=True) for work in (fill, copy)]
    for thread in threads:
        thread.start()
    for node in cluster.nodes.values():
        wait_for_copies()
        node.kill()
        wait_for_copies()  # the other two brokers take over
        node.start()
    wait_for_copies()
    kills_are_over.set()
    for thread in threads:
        thread.join(300)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert acknowledged == list(range(len(acknowledged)))
    assert values(cluster, source, len(acknowledged)) == acknowledged
    assert values(cluster, target, len(acknowledged)) == acknowledged


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
