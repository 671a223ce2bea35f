"""Two-phase commit (KIP-939) on Apache Kafka and on txnkafka: the answers to InitProducerId 6, and a prepared
transaction whose directory goes from one to the other."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.broker import KafkaBroker
from tests.conformance.hand_over.story import SETTINGS
from txnkafka import Admin, Broker, Consumer, LogDir, PreparedTxnState, Producer, TopicPartition
from txnkafka.client.admin.transaction_types import NO_TIMEOUT
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import UnsupportedVersionError
from txnkafka.handover.hand_over import hand_over
from txnkafka.handover.report import Owner
from txnkafka.wire.messages import APIS, RequestHeader, read_response, write_request

TWO_PHASE, UNSTABLE = "transaction.two.phase.commit.enable", "unstable.api.versions.enable"
BY_NAME = {api.name: api for api in APIS.values()}
ORDERS = TopicPartition("orders", 0)


def asked(bootstrap: str, name: str, version: int, **fields: Any) -> Any:
    """The answer to one request; None if the broker closes the connection."""
    host, _, port = bootstrap.rpartition(":")
    api = BY_NAME[name]
    request = b"".join(map(bytes, write_request(RequestHeader(api, version, 1, "c"), api.request(**fields))))
    with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rb") as answers:
        connection.sendall(request)
        head = answers.read(4)
        if len(head) < 4:
            return None
        return read_response(api, version, answers.read(struct.unpack(">i", head)[0]))[1]


def identified(bootstrap: str, name: str, version: int, **fields: Any) -> Any:
    """InitProducerId of a transactional id, once its coordinator has loaded."""
    while True:
        found = asked(bootstrap, "FindCoordinator", 4, key_type=1, coordinator_keys=(name,)).coordinators[0]
        if not found.error_code:
            break
    fields = {"transactional_id": name, "transaction_timeout_ms": 60_000, **fields}
    waiting = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    while (answer := asked(bootstrap, "InitProducerId", version, **fields)) is not None:
        if answer.error_code not in (*waiting, ErrorCode.CONCURRENT_TRANSACTIONS):
            return answer
    return None


def answers(bootstrap: str) -> dict[str, Any]:
    """The announced version, and the answer to each combination of the two flags."""
    versions = asked(bootstrap, "ApiVersions", 2)
    found: dict[str, Any] = {
        "announced": next(row.max_version for row in versions.api_keys if row.api_key == 22)
    }
    for enable in (False, True):
        for keep in (False, True):
            name = f"enable={enable} keep={keep}"
            answer = identified(bootstrap, name, 6, enable2_pc=enable, keep_prepared_txn=keep)
            found[name] = "closed" if answer is None else ErrorCode.of(answer.error_code).name
            if answer is not None and not answer.error_code:
                rows = asked(bootstrap, "DescribeTransactions", 0, transactional_ids=(name,))
                found[name] = rows.transaction_states[0].transaction_timeout_ms
    return found


@pytest.mark.parametrize(
    ("unstable", "two_phase"), [(False, False), (False, True), (True, False), (True, True)]
)
def test_the_flags_and_settings_have_the_same_answers(
    tmp_path: Path, unstable: bool, two_phase: bool
) -> None:
    settings = {TWO_PHASE: str(two_phase).lower(), UNSTABLE: str(unstable).lower()}
    with KafkaBroker(tmp_path, settings) as kafka:
        kafkas = answers(kafka.bootstrap_servers)
    with Broker.in_memory(**settings) as broker:
        ours = answers(broker.serve("127.0.0.1:0"))
    if unstable and two_phase:  # what Kafka does not do yet
        for name, limit in (("enable=False keep=True", 60_000), ("enable=True keep=True", NO_TIMEOUT)):
            assert (kafkas.pop(name), ours.pop(name)) == ("UNSUPPORTED_VERSION", limit)
        assert kafkas["enable=True keep=False"] == NO_TIMEOUT
    assert ours == kafkas
    assert kafkas["announced"] == (6 if unstable else 5)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Not running; its directory is made by txnkafka."""
    broker = KafkaBroker(tmp_path, {**SETTINGS, TWO_PHASE: "true", UNSTABLE: "true"}, is_static=True)
    yield broker
    broker.stop()


def prepared(producer: Producer, value: bytes, *, keeps: bool = False) -> PreparedTxnState:
    """Prepare a transaction with a record, and let the process end."""
    producer.init_transactions(keep_prepared=keeps)
    producer.begin_transaction()
    producer.send("orders", value, partition=0)
    state = producer.prepare_transaction()
    producer.close()
    return state


def values(consumer: Consumer) -> list[bytes | None]:
    """All committed records."""
    found: list[bytes | None] = []
    with consumer:
        consumer.assign([ORDERS])
        consumer.seek_to_beginning(ORDERS)
        (end,) = consumer.end_offsets([ORDERS]).values()
        while consumer.position(ORDERS) < end:
            found += [record.value for record in consumer.poll(1.0)]
    return found


def test_a_prepared_transaction_goes_to_kafka_and_back(kafka: KafkaBroker) -> None:
    path, now_ms = str(kafka.log_dir), SystemClock().now_ms()
    two_phase: dict[str, Any] = {TWO_PHASE: True}
    settings: dict[str, Any] = {**two_phase, UNSTABLE: True, "transaction.state.log.num.partitions": 4}
    with Broker.open(path, **settings) as broker:
        with broker.admin() as admin:
            admin.create_topic("orders")
        first = prepared(broker.producer(transactional_id="shop", **two_phase), b"1")
    assert hand_over(LocalDataFiles(), path, Owner.KAFKA, now_ms=now_ms).is_ready

    kafka.start()
    address = kafka.bootstrap_servers
    with Admin(bootstrap_servers=address) as admin:
        (found,) = admin.list_two_phase_transactions()
        assert (found.transactional_id, found.state) == ("shop", "Ongoing")
        assert PreparedTxnState(found.producer_id, found.producer_epoch) == first
        assert found.transaction_timeout_ms == NO_TIMEOUT
        assert found.topic_partitions == (ORDERS,)
        with pytest.raises(UnsupportedVersionError):  # Kafka does not keep transactions
            admin.complete_transaction("shop", first)
        ended = asked(
            address, "EndTxn", 5, transactional_id="shop", producer_id=first.producer_id,
            producer_epoch=first.epoch, committed=True,
        )  # fmt: skip
        assert (ended.error_code, ended.producer_epoch) == (0, first.epoch + 1)
    producer = Producer(bootstrap_servers=address, transactional_id="shop", **two_phase)
    second = prepared(producer, b"2")
    assert values(Consumer(bootstrap_servers=address)) == [b"1"]
    kafka.stop()

    assert hand_over(LocalDataFiles(), path, Owner.TXNKAFKA, now_ms=now_ms).is_ready
    open_ones = LogDir(path).coordinator.transactions
    assert open_ones["shop"].transaction_timeout_ms == NO_TIMEOUT
    with Broker.open(path, **settings) as broker:
        again = broker.producer(transactional_id="shop", **two_phase)
        again.init_transactions(keep_prepared=True)
        again.complete_transaction(second)
        again.begin_transaction()
        again.send("orders", b"3", partition=0)
        again.commit_transaction()
        assert values(broker.consumer()) == [b"1", b"2", b"3"]
    assert hand_over(LocalDataFiles(), path, Owner.KAFKA, now_ms=now_ms).is_ready
    kafka.start()
    assert values(Consumer(bootstrap_servers=address)) == [b"1", b"2", b"3"]


def test_prepare_and_complete_on_kafka_in_one_process(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path, {TWO_PHASE: "true", UNSTABLE: "true"}) as kafka:
        address = kafka.bootstrap_servers
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic("orders")
        options = {"bootstrap.servers": address, "transactional.id": "shop", TWO_PHASE: True}
        with Producer(options) as producer:
            producer.init_transactions()
            for value, is_decided in ((b"1", True), (b"2", False), (b"3", True)):
                producer.begin_transaction()
                producer.send("orders", value)
                state = producer.prepare_transaction()
                producer.complete_transaction(state if is_decided else "")
        assert values(Consumer(bootstrap_servers=address)) == [b"1", b"3"]
        left = prepared(Producer(options), b"4")
        kafka.stop()
        kafka.start()  # it stays open
        with Admin(bootstrap_servers=address) as admin:
            found = admin.describe_transactions("shop")["shop"]  # waits until the coordinator has loaded it
            assert admin.list_two_phase_transactions() == [found]
            assert PreparedTxnState(found.producer_id, found.producer_epoch) == left
            admin.fence_producers("shop")
            assert admin.list_two_phase_transactions() == []
        assert values(Consumer(bootstrap_servers=address)) == [b"1", b"3"]
