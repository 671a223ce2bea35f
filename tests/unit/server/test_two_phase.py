"""Two-phase commit (KIP-939) through bytes, on a broker in memory: InitProducerId 6, and who may write."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import Producer
from tests.unit.server.wire_node import WireNode, node
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import SERVED
from txnkafka.server.receive_buffer import BlockPool
from txnkafka.server.session import Session
from txnkafka.wire.messages import APIS, RequestHeader, write_request

ON = {"transaction_two_phase_commit_enable": True, "unstable_api_versions_enable": True}
T0 = TopicPartition("t", 0)


def init(of: WireNode, *, keeps: bool, **fields: Any) -> Any:
    return of.ask(
        "InitProducerId", 6, transactional_id="x", transaction_timeout_ms=1000, enable2_pc=True,
        keep_prepared_txn=keeps, **fields,
    )  # fmt: skip


def with_open_transaction(**configs: Any) -> tuple[WireNode, Producer]:
    """A node, and a producer with two-phase commit that has a record in t-0."""
    of = node(**ON, **configs)
    producer = Producer(of)
    answer = init(of, keeps=False)
    producer.identity = Answer(ErrorCode.NONE, answer.producer_id, answer.producer_epoch)
    assert producer.send(b"x", 0) == [ErrorCode.NONE]
    return of, producer


def test_an_open_transaction_is_kept() -> None:
    of, producer = with_open_transaction()
    answer = init(of, keeps=True)
    began = producer.identity
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        0, began.producer_id, began.producer_epoch + 1,
    )  # fmt: skip
    ongoing = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
    assert ongoing == (began.producer_id, began.producer_epoch)
    assert producer.end() == ErrorCode.PRODUCER_FENCED
    ended = of.ask(
        "EndTxn", 5, transactional_id="x", producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch, committed=True,
    )  # fmt: skip
    assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (
        0, answer.producer_id, answer.producer_epoch + 1,
    )  # fmt: skip
    nothing = init(of, keeps=True)
    assert (nothing.ongoing_txn_producer_id, nothing.ongoing_txn_producer_epoch) == (-1, -1)


def test_an_earlier_producer_adds_no_records_to_a_kept_transaction() -> None:
    """Its transaction is open in the partition, so that the leader alone would take them."""
    of, producer = with_open_transaction()
    kept = init(of, keeps=True)
    end = of.broker.logs[T0].log_end_offset
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH  # as Produce has it
    assert producer.send(b"late", 0) == [fenced]
    producer.identity = Answer(ErrorCode.NONE, kept.producer_id, kept.producer_epoch)
    producer.sequences.clear()
    assert producer.send(b"new", 0) != [ErrorCode.NONE]
    assert of.broker.logs[T0].log_end_offset == end


def test_it_outlives_timeouts_and_restarts() -> None:
    of, producer = with_open_transaction(transaction_abort_timed_out_transaction_cleanup_interval_ms=100)
    for keeps in (False, True):
        if keeps:
            init(of, keeps=True)
        of.now_ms += 10**10
        of.settle()
        of.restart()
        found = of.ask("DescribeTransactions", 0, transactional_ids=("x",)).transaction_states[0]
        assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 2**31 - 1)
        assert (found.producer_id, found.producer_epoch) == producer.identity[1:3]
        assert of.broker.logs[T0].last_stable_offset == 0
    answer = init(of, keeps=True)
    producer.identity = Answer(ErrorCode.NONE, answer.producer_id, answer.producer_epoch)
    assert producer.end() == ErrorCode.NONE
    assert of.broker.logs[T0].last_stable_offset == 2
    assert producer.send(b"next", 0) == [ErrorCode.NONE]
    assert producer.end() == ErrorCode.NONE


@pytest.mark.parametrize("is_on", [True, False])
def test_the_unstable_version_is_announced_and_accepted_with_its_setting(is_on: bool) -> None:
    of = node(unstable_api_versions_enable=is_on)
    ranges = {row.api_key: row.max_version for row in of.ask("ApiVersions", 2).api_keys}
    assert ranges.pop(22) == (6 if is_on else 5)
    assert ranges == {key: APIS[key].announced[1] for key in SERVED if key != 22}
    session = Session(BlockPool(), 1 << 20, SERVED, accepts_unstable=is_on)
    frame = b"".join(map(bytes, write_request(RequestHeader(APIS[22], 6, 7, "c"), APIS[22].request())))
    space = session.space()
    space[: len(frame)] = frame
    session.received(len(frame))
    if is_on:
        request = session.next_request()
        assert request is not None
        assert request.header.api_version == 6
    else:
        with pytest.raises(InvalidRequestError, match="InitProducerId version 6"):
            session.next_request()


def test_without_the_setting_of_two_phase_commit() -> None:
    of = node(unstable_api_versions_enable=True)
    Producer(of)
    assert init(of, keeps=False).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    kept = of.ask(
        "InitProducerId", 6, transactional_id="x", transaction_timeout_ms=1000, keep_prepared_txn=True
    )
    assert (kept.error_code, kept.producer_id) == (ErrorCode.UNSUPPORTED_VERSION, -1)
