"""Each row of the table of errors: the answer to a request, and the state of the producer after it.

``OUTCOMES`` is written from the protocol's description, independently of ``txn_state.REACTIONS``:
R retry, C find the coordinator and retry, A abort, B abort and bump the epoch, U uninitialized again,
P fenced, F fatal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.client.producer.fake_broker import FakeBroker, producer_over
from txnkafka.client.cluster import TRANSACTION
from txnkafka.client.group_metadata import ConsumerGroupMetadata
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.client.producer import Producer
from txnkafka.client.producer.txn_state import SOURCES, State
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
)
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

OUTCOMES = {
    "InitProducerId": {
        14: "R", 51: "R", 15: "C", 16: "C", 47: "P", 90: "P", 49: "F", 48: "F", 53: "U", 31: "U", 120: "A",
        59: "F", 55: "F", 42: "F",
    },
    "AddPartitionsToTxn": {
        14: "R", 51: "R", 3: "R", 15: "C", 16: "C", 47: "P", 90: "P", 49: "F", 48: "F", 53: "F", 120: "A",
        59: "B", 29: "A", 55: "A", 42: "A",
    },
    "AddOffsetsToTxn": {
        14: "R", 51: "R", 15: "C", 16: "C", 47: "P", 90: "P", 49: "F", 48: "F", 53: "F", 120: "A", 59: "B",
        30: "A", 55: "F",
    },
    "TxnOffsetCommit": {
        14: "R", 51: "R", 3: "R", 15: "C", 16: "C", 7: "C", 47: "P", 90: "P", 49: "F", 48: "F", 53: "F",
        120: "A", 59: "F", 29: "F", 30: "A", 22: "A", 25: "A", 82: "A", 55: "F",
    },
    "EndTxn commit": {
        14: "R", 51: "R", 15: "C", 16: "C", 47: "P", 90: "P", 49: "F", 48: "F", 53: "F", 120: "A", 59: "B",
        55: "F",
    },
    "EndTxn abort": {14: "R", 51: "R", 15: "C", 47: "P", 90: "P", 49: "F", 48: "F", 53: "F", 120: "F"},
}  # fmt: skip
ROWS = [(request, code, row) for request, rows in OUTCOMES.items() for code, row in rows.items()]
GROUP = ConsumerGroupMetadata("readers", 3, "member")


def begun(version: int) -> tuple[Producer, FakeBroker]:
    producer, broker = producer_over(version=version, transactional_id="shop")
    producer.init_transactions()
    producer.begin_transaction()
    return producer, broker


def run(request: str, version: int) -> tuple[Producer, FakeBroker, Callable[[], Any]]:
    """Return a producer, and the call that makes it send the request."""
    if request == "InitProducerId":
        producer, broker = producer_over(version=version, transactional_id="shop")
        return producer, broker, producer.init_transactions
    producer, broker = begun(version)
    if request in ("AddOffsetsToTxn", "TxnOffsetCommit"):
        offsets = {TopicPartition("stock", 1): OffsetAndMetadata(5)}
        return producer, broker, lambda: producer.send_offsets_to_transaction(offsets, GROUP)
    producer.send("orders", b"1")
    if request == "EndTxn abort":
        producer.flush()
    return producer, broker, producer.abort_transaction if "abort" in request else producer.commit_transaction


@pytest.mark.parametrize(("request_name", "code", "row"), ROWS)
def test_every_error_has_its_outcome(request_name: str, code: int, row: str) -> None:
    name = request_name.split()[0]
    version = 1 if name.startswith("Add") or row == "B" else 2
    producer, broker, call = run(request_name, version)
    broker.failures[name] = deque([code])
    found_before = len(broker.transport.sent("FindCoordinator"))
    txn = producer._core.txn
    assert txn is not None
    if row in "RC":
        call()
        assert len(broker.transport.sent(name)) == 2
        found = len(broker.transport.sent("FindCoordinator")) - found_before
        first = 0 if name in ("AddPartitionsToTxn", "EndTxn") else 1
        assert found == first + (row == "C")
        return
    with pytest.raises(KafkaError) as raised:
        call()
    assert len(broker.transport.sent(name)) == 1
    assert txn.state is {
        "A": State.ABORTABLE_ERROR, "B": State.ABORTABLE_ERROR, "U": State.UNINITIALIZED,
        "P": State.FATAL_ERROR, "F": State.FATAL_ERROR,
    }[row]  # fmt: skip
    assert isinstance(raised.value, ProducerFencedError) == (row == "P")
    assert txn.needs_bump == (row == "B")
    check_rest(producer, broker, row, name, code)


def check_rest(producer: Producer, broker: FakeBroker, row: str, name: str, code: int) -> None:
    """Check what is possible after an error."""
    if row in "PF":
        kind: type[KafkaError] = ProducerFencedError if row == "P" else KafkaError
        for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(kind):
                call()
        with pytest.raises(kind):
            producer.send("orders", b"2")
    elif row == "U":
        producer.init_transactions()
        producer.begin_transaction()
    elif name != "InitProducerId":
        with pytest.raises(TransactionAbortableError):
            producer.send("orders", b"2")
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        bumps = len(broker.transport.sent("InitProducerId")) - 1
        assert bumps == (row == "B")


@pytest.mark.parametrize("code", [22, 25])
def test_a_member_that_was_replaced_gets_the_error_of_its_group(code: int) -> None:
    _, broker, call = run("TxnOffsetCommit", 2)
    broker.failures["TxnOffsetCommit"] = deque([code])
    with pytest.raises(CommitFailedError, match="another member; abort the transaction"):
        call()


@pytest.mark.parametrize(
    ("kind", "code", "state"),
    [
        ("transaction", 53, State.FATAL_ERROR),
        ("transaction", 120, State.ABORTABLE_ERROR),
        ("group", 30, State.ABORTABLE_ERROR),
        ("group", 24, State.FATAL_ERROR),
    ],
)
def test_errors_of_the_lookup_of_coordinators(kind: str, code: int, state: State) -> None:
    producer, broker, call = run("InitProducerId" if kind == "transaction" else "TxnOffsetCommit", 2)
    broker.transport.answers["FindCoordinator"] = lambda _: FindCoordinatorResponse(
        coordinators=(Coordinator(error_code=code, node_id=-1),)
    )
    with pytest.raises(KafkaError, match=ErrorCode.of(code).name):
        call()
    assert producer._core.txn is not None
    assert producer._core.txn.state is state


def test_a_coordinator_that_is_not_ready_is_asked_again() -> None:
    _, broker, call = run("InitProducerId", 2)
    answer = broker.transport.answers["FindCoordinator"]
    codes = deque([15, 14])

    def not_ready(request: Any) -> Any:
        code = codes.popleft()
        broker.transport.answers["FindCoordinator"] = not_ready if codes else answer
        return FindCoordinatorResponse(coordinators=(Coordinator(error_code=code, node_id=-1),))

    broker.transport.answers["FindCoordinator"] = not_ready
    call()
    assert broker.transport.names() == ["FindCoordinator"] * 3 + ["InitProducerId"]


PRODUCE_ABORTS = (47, 48, 45, 10, 29, 87, 2, 120, 55)
PRODUCE_FATAL = (31, 53, 90, 35, 49)


@pytest.mark.parametrize("code", PRODUCE_ABORTS + PRODUCE_FATAL)
def test_a_record_that_was_refused_fails_the_commit(code: int) -> None:
    producer, broker = producer_over(transactional_id="shop", retries=1)
    producer.init_transactions()
    producer.begin_transaction()
    broker.failures["Produce"] = deque([code] * 9)
    future = producer.send("orders", b"1")
    error = future.exception()
    assert error is not None
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.of(code)
    assert "orders-0" in str(error)
    with pytest.raises(KafkaError) as raised:
        producer.commit_transaction()
    assert broker.transport.sent("EndTxn") == []
    txn = producer._core.txn
    assert txn is not None
    if code in PRODUCE_FATAL:
        assert txn.state is State.FATAL_ERROR
        assert raised.value.code is ErrorCode.of(code)
        return
    assert isinstance(raised.value, TransactionAbortableError)
    assert str(ErrorCode.of(code).name) in str(raised.value)
    broker.failures["Produce"].clear()
    producer.abort_transaction()
    with producer.transaction():
        producer.send("orders", b"2")
    assert broker.values("orders") == [b"2"]


def test_a_state_is_entered_only_from_its_sources() -> None:
    producer, _ = producer_over(transactional_id="shop")
    txn = producer._core.txn
    assert txn is not None
    for target, sources in SOURCES.items():
        for state in State:
            txn.state = state
            if state in sources:
                txn.transition(target)
                assert txn.state is target
            else:
                with pytest.raises(IllegalStateError, match=f"{target.name} cannot follow {state.name}"):
                    txn.transition(target)
                assert txn.state is state


def test_calls_in_the_wrong_state_say_what_to_call() -> None:
    producer, _ = producer_over(transactional_id="shop")
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(IllegalStateError, match="call init_transactions"):
            call()
    with pytest.raises(IllegalStateError, match="call init_transactions"):
        producer.send("orders", b"1")
    producer.init_transactions()
    for call in (producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(IllegalStateError, match="call begin_transaction"):
            call()
    with pytest.raises(IllegalStateError, match="call begin_transaction"):
        producer.send("orders", b"1")
    with pytest.raises(
        IllegalStateError, match="INITIALIZING cannot follow READY: init_transactions is called once"
    ):
        producer.init_transactions()
    producer.begin_transaction()
    with pytest.raises(
        IllegalStateError, match="cannot follow IN_TRANSACTION: call commit_transaction or abort"
    ):
        producer.begin_transaction()


def test_a_producer_without_transactional_id_has_no_transactions() -> None:
    producer, _ = producer_over()
    for call in (producer.init_transactions, producer.begin_transaction, producer.commit_transaction):
        with pytest.raises(IllegalStateError, match=r"has no transactional\.id"):
            call()


def test_the_coordinator_is_found_again_after_its_connection_ended() -> None:
    producer, broker = begun(2)
    producer.send("orders", b"1")
    end_txn = broker.transport.answers["EndTxn"]

    def lost(request: Any) -> None:
        broker.transport.answers["EndTxn"] = end_txn
        request.fail()

    broker.transport.answers["EndTxn"] = lost
    producer.commit_transaction()
    assert len(broker.transport.sent("EndTxn")) == 2
    assert [each.message.key_type for each in broker.transport.sent("FindCoordinator")] == [TRANSACTION] * 2
