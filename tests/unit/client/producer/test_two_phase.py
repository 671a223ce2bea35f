"""Two-phase commit (KIP-939): prepared transactions of an embedded broker, and of the fake one's answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from txnkafka import Broker, PreparedTxnState, Producer, TopicPartition, aio
from txnkafka.client.admin import UpgradeType
from txnkafka.client.producer.txn_state import State
from txnkafka.errors import (
    IllegalStateError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    UnsupportedVersionError,
)

ON = {"transaction.two.phase.commit.enable": True, "unstable.api.versions.enable": True}
PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.in_memory(**ON) as opened:
        yield opened


def producer_of(broker: Broker, name: str = "shop") -> Producer:
    return broker.producer(transactional_id=name, transaction_two_phase_commit_enable=True)


def prepared(broker: Broker, value: bytes, name: str = "shop") -> tuple[Producer, PreparedTxnState]:
    """A producer with a prepared transaction of one record."""
    producer = producer_of(broker, name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", value)
    return producer, producer.prepare_transaction()


def restarted(broker: Broker) -> Producer:
    """The producer of the next process, which keeps the transaction."""
    producer = producer_of(broker)
    producer.init_transactions(keep_prepared=True)
    return producer


def values(broker: Broker) -> list[bytes | None]:
    """The committed records."""
    with broker.consumer() as consumer:
        consumer.assign([PARTITION])
        consumer.seek_to_beginning(PARTITION)
        (end,) = consumer.end_offsets([PARTITION]).values()
        found: list[bytes | None] = []
        while consumer.position(PARTITION) < end:
            found += [record.value for record in consumer.poll(1.0)]
    return found


def test_a_prepared_transaction_is_completed_by_its_state(broker: Broker) -> None:
    producer, state = prepared(broker, b"1")
    assert str(state) == f"{state.producer_id}:{state.epoch}"
    assert values(broker) == []
    producer.complete_transaction(state)
    assert values(broker) == [b"1"]
    producer.begin_transaction()
    producer.send("orders", b"2")
    later = producer.prepare_transaction()
    assert later != state
    producer.complete_transaction(str(state))  # the database has an earlier one
    assert values(broker) == [b"1"]
    with producer.transaction():
        producer.send("orders", b"3")
    assert values(broker) == [b"1", b"3"]


def test_all_records_are_acknowledged_when_it_is_prepared(broker: Broker) -> None:
    producer = broker.producer(
        transactional_id="shop", transaction_two_phase_commit_enable=True, linger_ms=60_000
    )
    producer.init_transactions()
    producer.begin_transaction()
    futures = [producer.send("orders", b"%d" % number) for number in range(50)]
    state = producer.prepare_transaction()
    assert [future.done() for future in futures] == [True] * 50
    producer.complete_transaction(state)
    assert len(values(broker)) == 50


@pytest.mark.parametrize("restarts", [1, 3])
@pytest.mark.parametrize("is_decided", [True, False])
def test_the_next_producer_completes_it(broker: Broker, restarts: int, is_decided: bool) -> None:
    zombie, state = prepared(broker, b"1")
    for _ in range(restarts):
        producer = restarted(broker)
        with broker.admin() as admin:
            found = admin.describe_transactions("shop")["shop"]
        assert (found.state, found.producer_id, found.producer_epoch) == (
            "Ongoing", state.producer_id, state.epoch,
        )  # fmt: skip
    with pytest.raises(ProducerFencedError):
        zombie.commit_transaction()
    producer.complete_transaction(state if is_decided else "")
    with producer.transaction():
        producer.send("orders", b"2")
    assert values(broker) == ([b"1"] if is_decided else []) + [b"2"]


def test_an_earlier_producer_that_kept_it_cannot_end_it(broker: Broker) -> None:
    _, state = prepared(broker, b"1")
    zombie = restarted(broker)
    producer = restarted(broker)
    with pytest.raises(ProducerFencedError):
        zombie.complete_transaction("")
    producer.complete_transaction(state)
    assert values(broker) == [b"1"]


def test_without_keep_prepared_it_is_aborted(broker: Broker) -> None:
    _, state = prepared(broker, b"1")
    restarted(broker)
    producer = producer_of(broker)
    producer.init_transactions()
    with pytest.raises(InvalidTxnStateError, match="no prepared transaction"):
        producer.complete_transaction(state)
    with producer.transaction():
        producer.send("orders", b"2")
    assert values(broker) == [b"2"]


def test_nothing_is_left_to_complete_after_the_end(broker: Broker) -> None:
    producer, state = prepared(broker, b"1")
    producer.complete_transaction(state)
    again = restarted(broker)
    again.complete_transaction(state)
    assert values(broker) == [b"1"]
    with again.transaction():
        again.send("orders", b"2")
    with pytest.raises(InvalidTxnStateError):
        again.complete_transaction(state)


def test_it_takes_no_records_and_no_other_transaction(broker: Broker) -> None:
    producer, _ = prepared(broker, b"1")
    for call in (
        lambda: producer.send("orders", b"2"), producer.begin_transaction, producer.prepare_transaction,
        producer.init_transactions,
    ):  # fmt: skip
        with pytest.raises(IllegalStateError):
            call()
    kept = restarted(broker)
    with pytest.raises(IllegalStateError, match="complete_transaction"):
        kept.send("orders", b"2")
    kept.abort_transaction()
    assert values(broker) == []


def test_close_leaves_it_open(broker: Broker) -> None:
    producer, state = prepared(broker, b"1")
    producer.close()
    again = restarted(broker)
    again.close()
    restarted(broker).complete_transaction(state)
    assert values(broker) == [b"1"]


def test_an_exception_in_the_with_block_leaves_it_open(broker: Broker) -> None:
    producer, states = producer_of(broker), list[PreparedTxnState]()

    def work() -> None:
        with producer.transaction():
            producer.send("orders", b"1")
            states.append(producer.prepare_transaction())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        work()
    (state,) = states
    assert caught.value.__notes__ == [f"and the transaction {state} is prepared: call complete_transaction"]
    producer.complete_transaction(state)
    assert values(broker) == [b"1"]


def test_the_end_of_the_with_block_commits_it(broker: Broker) -> None:
    producer = producer_of(broker)
    with producer.transaction():
        producer.send("orders", b"1")
        producer.prepare_transaction()
    assert values(broker) == [b"1"]


def test_a_failed_record_cannot_be_prepared(broker: Broker) -> None:
    producer, _ = prepared(broker, b"1")
    restarted(broker).abort_transaction()
    zombie = producer  # fenced, and it does not know it
    zombie._core.txn.transition(State.COMMITTING_TRANSACTION)  # type: ignore[union-attr]
    zombie._core.txn.transition(State.READY)  # type: ignore[union-attr]
    zombie.begin_transaction()
    zombie.send("orders", b"2")
    with pytest.raises(KafkaError):
        zombie.prepare_transaction()
    assert values(broker) == []


def test_a_producer_with_a_time_limit_cannot_prepare(broker: Broker) -> None:
    producer = broker.producer(transactional_id="shop")
    producer.init_transactions()
    producer.begin_transaction()
    with pytest.raises(InvalidTxnStateError, match=r"transaction\.two\.phase\.commit\.enable=true"):
        producer.prepare_transaction()
    producer.send("orders", b"1")
    producer.commit_transaction()
    assert values(broker) == [b"1"]


def test_an_empty_transaction_is_prepared_and_completed(broker: Broker) -> None:
    with broker.admin() as admin:
        admin.create_topic("orders")
    producer = producer_of(broker)
    producer.init_transactions()
    producer.begin_transaction()
    state = producer.prepare_transaction()
    producer.complete_transaction(state)
    restarted(broker).complete_transaction(state)
    assert values(broker) == []


@pytest.mark.parametrize("commits", [True, False])
def test_no_transaction_has_the_state_of_an_earlier_one(broker: Broker, commits: bool) -> None:
    """The database has the state of a transaction without records, and not the state of the next one."""
    producer = producer_of(broker)
    producer.init_transactions()
    producer.begin_transaction()
    in_database = producer.prepare_transaction()
    if commits:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
    producer.begin_transaction()
    producer.send("orders", b"1")
    assert producer.prepare_transaction() != in_database
    restarted(broker).complete_transaction(in_database)
    assert values(broker) == []


def test_before_transaction_version_2_nothing_is_prepared(broker: Broker) -> None:
    """All transactions of a producer had one epoch then, so that a state would not name one of them."""
    with broker.admin() as admin:
        admin.update_features({"transaction.version": 1}, upgrade_type=UpgradeType.SAFE_DOWNGRADE)
    producer = producer_of(broker)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"1")
    with pytest.raises(UnsupportedVersionError, match=r"transaction\.version 2"):
        producer.prepare_transaction()
    producer.commit_transaction()
    assert values(broker) == [b"1"]


def test_the_time_limit_is_no_setting_beside_two_phase_commit() -> None:
    with pytest.raises(ValueError, match=r"transaction\.timeout\.ms has no effect"):
        Producer(
            bootstrap_servers="127.0.0.1:1", transactional_id="shop", transaction_timeout_ms=60_000,
            transaction_two_phase_commit_enable=True,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({}, {"transaction_two_phase_commit_enable": True}, r"unstable\.api\.versions\.enable=true"),
        ({"unstable.api.versions.enable": True}, {"transaction_two_phase_commit_enable": True},
         r"TRANSACTIONAL_ID_AUTHORIZATION_FAILED: .*transaction\.two\.phase\.commit\.enable=true"),
        ({"unstable.api.versions.enable": True}, {}, "UNSUPPORTED_VERSION: the broker keeps no prepared"),
    ],
)  # fmt: skip
def test_a_broker_without_it(settings: dict[str, bool], options: dict[str, bool], message: str) -> None:
    with Broker.in_memory(**settings) as broker:
        producer = broker.producer(transactional_id="shop", **options)
        with pytest.raises(KafkaError, match=message) as caught:
            producer.init_transactions(keep_prepared=not options)
        assert isinstance(caught.value, UnsupportedVersionError) or "AUTHORIZATION" in message


def test_for_asyncio(broker: Broker) -> None:
    async def run() -> None:
        first = aio.Producer(broker=broker, transactional_id="shop", transaction_two_phase_commit_enable=True)
        await first.init_transactions()
        first.begin_transaction()
        await first.send("orders", b"1")
        state = await first.prepare_transaction()
        await first.close()
        async with aio.Producer(
            broker=broker, transactional_id="shop", transaction_two_phase_commit_enable=True
        ) as second:
            await second.init_transactions(keep_prepared=True)
            await second.complete_transaction(str(state))

    asyncio.run(run())
    assert values(broker) == [b"1"]


def test_offsets_of_a_group_are_prepared_with_the_records(broker: Broker) -> None:
    with broker.producer() as source:
        source.send("input", b"1").result()
    consumer = broker.consumer("input", group_id="copiers", enable_auto_commit=False)
    while not consumer.poll(1.0):
        pass
    producer = producer_of(broker)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"1")
    producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
    state = producer.prepare_transaction()
    producer.close()
    with broker.admin() as admin:
        assert admin.list_group_offsets("copiers") == {}
        restarted(broker).complete_transaction(state)
        (offset,) = admin.list_group_offsets("copiers").values()
    assert (offset.offset, values(broker)) == (1, [b"1"])
    consumer.close()
