"""``Producer`` and ``Consumer`` over three transports: each story gives the same in process, on ``txnkafka
serve``, and on Apache Kafka."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving
from txnkafka import (
    Admin,
    Broker,
    CommitFailedError,
    Consumer,
    IllegalStateError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    OffsetAndMetadata,
    Producer,
    ProducerFencedError,
    TopicPartition,
    TransactionAbortableError,
)

TRANSPORTS: Final = ("in process", "txnkafka serve", "Apache Kafka 4.4.0")
SETTINGS: Final = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
PATIENCE: Final = 30_000  # milliseconds


class Clients(NamedTuple):
    """The clients of one transport."""

    producer: Callable[..., Producer]
    consumer: Callable[..., Consumer]
    admin: Callable[..., Admin]


@pytest.fixture(scope="module", params=TRANSPORTS)
def clients(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    directory = tmp_path_factory.mktemp("broker")
    if request.param == TRANSPORTS[0]:
        with Broker.open(directory / "data", **SETTINGS) as broker:  # type: ignore[arg-type]
            yield Clients(broker.producer, broker.consumer, broker.admin)
    elif request.param == TRANSPORTS[1]:
        options = [word for pair in SETTINGS.items() for word in ("--config", "=".join(pair))]
        with Serving(directory / "data", *options) as serving:
            yield _over_socket(serving.address)
            assert serving.stop() == 0
            assert "Traceback" not in serving.log()
    else:
        with KafkaBroker(directory, SETTINGS) as kafka:
            yield _over_socket(kafka.bootstrap_servers)


def _over_socket(address: str) -> Clients:
    def consumer(*topics: str, **settings: Any) -> Consumer:
        given = {"auto_offset_reset": "earliest", "bootstrap_servers": address, **settings}
        return Consumer(given, topics=topics)

    return Clients(
        lambda **settings: Producer(bootstrap_servers=address, **settings),
        consumer,
        lambda **settings: Admin(bootstrap_servers=address, **settings),
    )


@pytest.fixture
def topic(clients: Clients, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)[:100].strip("-")
    with clients.admin() as admin:
        admin.create_topic(name, partitions=2)
    return name


def values(clients: Clients, topic: str, count: int, **settings: Any) -> list[bytes | None]:
    """Return the values that a consumer of partition 0 gets, in order."""
    with clients.consumer(**settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[bytes | None] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll(PATIENCE)]
        return found + [record.value for record in consumer.poll(300)]


def test_commit_abort_and_empty_transactions(clients: Clients, topic: str) -> None:
    with clients.producer(transactional_id=topic) as producer:
        for outcome in ("commit", "abort", "empty", "commit"):
            if outcome == "abort":
                producer.begin_transaction()
                producer.send(topic, b"aborted", partition=0)
                producer.flush()
                producer.abort_transaction()
                continue
            with producer.transaction():
                if outcome == "commit":
                    producer.send(topic, b"first", partition=0)
                    producer.send(topic, b"other", partition=1)
    assert values(clients, topic, 2) == [b"first", b"first"]
    uncommitted = values(clients, topic, 3, isolation_level="read_uncommitted")
    assert uncommitted == [b"first", b"aborted", b"first"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs_headers_and_timestamps(clients: Clients, topic: str, codec: str) -> None:
    name = f"{topic}-{codec}"
    with clients.producer(compression_type=codec, linger_ms=50) as producer:
        sent = [
            producer.send(
                name, b"%d" % i * 50, key=b"k", timestamp=1_700_000_000_000 + i, headers=[("h", None)]
            )
            for i in range(100)
        ]
        assert [future.result().offset for future in sent] == list(range(100))
    with clients.consumer(name, group_id=name) as consumer:
        found = []
        while len(found) < 100:
            found += consumer.poll(PATIENCE)
    assert [(each.value, each.timestamp - 1_700_000_000_000) for each in found] == [
        (b"%d" % i * 50, i) for i in range(100)
    ]
    assert {(each.key, tuple(each.headers)) for each in found} == {(b"k", (("h", None),))}


def test_a_second_producer_fences_the_first(clients: Clients, topic: str) -> None:
    with (
        clients.producer(transactional_id=topic) as first,
        clients.producer(transactional_id=topic) as second,
    ):
        first.init_transactions()
        first.begin_transaction()
        first.send(topic, b"half done", partition=0)
        first.flush()
        with second.transaction():
            second.send(topic, b"second", partition=0)
        with pytest.raises(KafkaError):
            first.send(topic, b"zombie", partition=0).result()
        with pytest.raises(ProducerFencedError):
            first.abort_transaction()
        with pytest.raises(ProducerFencedError):
            first.begin_transaction()
    assert values(clients, topic, 1) == [b"second"]


@pytest.mark.parametrize("call", ["send", "offsets", "commit", "abort"])
@pytest.mark.parametrize("fencer", ["producer", "admin"])
def test_a_fenced_producer_is_refused_at_each_call(
    clients: Clients, topic: str, fencer: str, call: str
) -> None:
    name = f"{topic}-{fencer}-{call}"
    place = TopicPartition(topic, 0)
    with clients.producer(transactional_id=name) as old, clients.admin() as admin:
        old.init_transactions()
        old.begin_transaction()
        old.send(topic, b"of the zombie", partition=0).result()
        if fencer == "admin":
            admin.fence_producers([name])
        else:
            with clients.producer(transactional_id=name) as new, new.transaction():
                new.send(topic, b"of the new one", partition=0)
        calls = {
            "send": lambda: old.send(topic, b"late", partition=0).result(),
            "offsets": lambda: old.send_offsets_to_transaction({place: 7}, group),
            "commit": old.commit_transaction,
            "abort": old.abort_transaction,
        }
        with clients.consumer(group_id=name) as consumer:
            group = consumer.group_metadata()
        with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
            calls[call]()
        with pytest.raises(ProducerFencedError):
            old.abort_transaction()
    assert values(clients, topic, fencer == "producer") == [b"of the new one"] * (fencer == "producer")
    if call == "offsets":
        with clients.consumer(group_id=name) as consumer:
            assert consumer.committed([place]) == {place: None}


def test_an_abort_after_a_commit_and_a_second_init(clients: Clients, topic: str) -> None:
    with clients.producer(transactional_id=topic) as producer:
        for _ in range(3):
            with producer.transaction():
                producer.send(topic, b"committed", partition=0)
            producer.begin_transaction()
            producer.abort_transaction()
        with pytest.raises(IllegalStateError, match="called once"):
            producer.init_transactions()
    assert values(clients, topic, 3) == [b"committed"] * 3


def test_a_fetch_that_waits_gets_the_records_of_a_commit_and_no_aborted_ones(
    clients: Clients, topic: str
) -> None:
    place = TopicPartition(topic, 0)
    with (
        clients.producer(transactional_id=topic) as producer,
        clients.consumer(fetch_max_wait_ms=20_000) as consumer,
    ):
        producer.init_transactions()
        consumer.assign([place])
        assert consumer.poll(100) == []  # its fetch waits at the broker
        for outcome in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send(topic, outcome.__name__.encode(), partition=0).result()
            assert consumer.poll(100) == []
            outcome()
        assert [record.value for record in consumer.poll(PATIENCE)] == [b"commit_transaction"]


def test_the_metadata_of_offsets_in_a_transaction_is_kept(clients: Clients, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with clients.producer(transactional_id=topic) as producer, clients.consumer(group_id=topic) as consumer:
        producer.init_transactions()
        for number, commit in enumerate((True, False)):
            producer.begin_transaction()
            offset = OffsetAndMetadata(5 + number, metadata=f"batch {number}")
            producer.send_offsets_to_transaction({place: offset}, consumer.group_metadata())
            producer.commit_transaction() if commit else producer.abort_transaction()
        committed = consumer.committed([place])[place]
        assert committed is not None
        assert (committed.offset, committed.metadata) == (5, "batch 0")


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_goes_on(
    clients: Clients, topic: str
) -> None:
    with clients.producer(transactional_id=topic, transaction_timeout_ms=1_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"too late", partition=0)
        producer.flush()
        with clients.admin() as admin:
            while admin.describe_transactions([topic])[topic].state not in ("CompleteAbort", "PrepareAbort"):
                pass
        with pytest.raises((TransactionAbortableError, KafkaError)):
            producer.send(topic, b"too late", partition=0).result()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"in time", partition=0)
    assert values(clients, topic, 1) == [b"in time"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consume_transform_produce_in_a_group(clients: Clients, topic: str, protocol: str) -> None:
    source, target, group = f"{topic}-{protocol}-in", f"{topic}-{protocol}-out", f"{topic}-{protocol}"
    with clients.admin() as admin, clients.producer() as orders:
        admin.create_topic(source, partitions=2)
        admin.create_topic(target, partitions=1)
        for i in range(40):
            orders.send(source, b"%02d" % i, partition=i % 2)
    copied = []
    with (
        clients.consumer(
            source, group_id=group, group_protocol=protocol, enable_auto_commit=False
        ) as consumer,
        clients.producer(transactional_id=group) as producer,
    ):
        while len(copied) < 40:
            records = consumer.poll(PATIENCE, max_records=7)
            with producer.transaction():
                for record in records:
                    producer.send(target, record.value, partition=0)
                producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
            copied += records
        partitions = [TopicPartition(source, number) for number in range(2)]
        committed = consumer.committed(partitions)
        assert [committed[each].offset for each in partitions] == [20, 20]  # type: ignore[union-attr]
    assert sorted(values(clients, target, 40)) == [b"%02d" % i for i in range(40)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_member_that_the_group_has_replaced_are_refused(
    clients: Clients, topic: str, protocol: str
) -> None:
    group = f"{topic}-{protocol}"
    with clients.producer(transactional_id=group) as producer:
        producer.init_transactions()
        old = clients.consumer(topic, group_id=group, group_protocol=protocol)
        while not old.assignment():
            old.poll(100)
        metadata = old.group_metadata()
        old.close()
        producer.begin_transaction()
        producer.send(topic, b"of the old member", partition=0)
        with pytest.raises((CommitFailedError, TransactionAbortableError)):
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, metadata)
        producer.abort_transaction()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_members_share_the_partitions_and_the_rest_takes_over(
    clients: Clients, topic: str, protocol: str
) -> None:
    settings: dict[str, Any] = {"group_id": f"{topic}-{protocol}", "group_protocol": protocol}
    if protocol == "classic":
        settings["heartbeat_interval_ms"] = 300
    first, second = clients.consumer(topic, **settings), clients.consumer(topic, **settings)
    ended, of_second = threading.Event(), [frozenset[TopicPartition]()]

    def poll_second() -> None:
        while not ended.is_set():
            second.poll(50)
            of_second[0] = second.assignment()
        second.close()

    thread = threading.Thread(target=poll_second, daemon=True)
    thread.start()
    try:
        while len(first.assignment()) != 1 or len(of_second[0]) != 1:
            first.poll(50)
        assert first.assignment() | of_second[0] == {TopicPartition(topic, n) for n in range(2)}
    finally:
        ended.set()
    while len(first.assignment()) != 2:
        first.poll(50)
    thread.join(60)
    assert not thread.is_alive()
    first.close()


def test_positions_times_and_lag(clients: Clients, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with clients.producer(transactional_id=topic) as producer, clients.consumer(group_id=topic) as consumer:
        with producer.transaction():
            for i in range(10):
                producer.send(topic, b"%d" % i, partition=0, timestamp=1_700_000_000_000 + 1000 * i)
        consumer.assign([place])
        assert consumer.beginning_offsets([place]) == {place: 0}
        while consumer.end_offsets([place]) != {place: 11}:  # the marker is written after the answer
            pass
        found = consumer.offsets_for_times({place: 1_700_000_004_500})[place]
        assert found is not None
        assert (found.offset, found.timestamp) == (5, 1_700_000_005_000)
        consumer.seek(place, 8)
        assert [record.value for record in consumer.poll(PATIENCE)] == [b"8", b"9"]
        consumer.seek_to_beginning(place)
        assert consumer.position(place) == 0
        assert consumer.lag(place) == 11
        consumer.commit({place: 3})
        committed = consumer.committed([place])[place]
        assert committed is not None
        assert committed.offset == 3
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).result()
        assert consumer.end_offsets([place]) == {place: 11}
        producer.abort_transaction()


def test_a_topic_that_does_not_exist(clients: Clients, tmp_path: Path) -> None:
    with clients.producer(max_block_ms=300) as producer, pytest.raises((KafkaTimeoutError, KafkaError)):
        producer.send("not a name", b"x")


def test_columns_arrive_as_they_were_sent(clients: Clients, topic: str) -> None:
    pa = pytest.importorskip("pyarrow")
    with clients.producer(transactional_id=topic) as producer, producer.transaction():
        keys = pa.array([b"k%d" % (i % 7) for i in range(5_000)])
        producer.send_columns(topic, keys=keys, values=pa.array([b"%d" % i for i in range(5_000)]))
    with clients.consumer(topic, group_id=topic) as consumer:
        tables, count = [], 0
        while count < 5_000:
            tables.append(consumer.poll_arrow(PATIENCE, columns=("key", "value", "partition")))
            count += tables[-1].num_rows
    rows = pa.concat_tables(tables).to_pylist()
    assert sorted(int(row["value"]) for row in rows) == list(range(5_000))
    assert all(int(row["value"]) % 7 == int(row["key"][1:]) for row in rows)
    places = {(row["key"], row["partition"]) for row in rows}
    assert len(places) == 7
