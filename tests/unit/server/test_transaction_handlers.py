"""Transactions: each API in each of its versions on a broker in memory, through bytes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import Producer
from tests.unit.server.wire_node import node, transactional, versions
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaStorageError
from txnkafka.model import TopicPartition
from txnkafka.wire.messages import add_partitions_to_txn as add_partitions
from txnkafka.wire.messages import create_topics, describe_producers, metadata
from txnkafka.wire.messages import write_txn_markers as markers


@versions("FindCoordinator")
def test_find_coordinator(version: int) -> None:
    of = node()

    def find(kind: int) -> Any:
        wanted: dict[str, Any] = {"coordinator_keys": ("x",)} if version >= 4 else {"key": "x"}
        answer = of.ask("FindCoordinator", version, **wanted, **({"key_type": kind} if version else {}))
        found = answer.coordinators[0] if version >= 4 else answer
        return ErrorCode(found.error_code).name, found.node_id, found.host, found.port

    here = "NONE", 1, "localhost", 9092
    assert find(0) == here
    if version:
        assert find(1) == here
        assert "__transaction_state" in of.broker.image.topics
        assert find(2) == ("INVALID_REQUEST", -1, "", -1)


def test_the_coordinator_is_found_when_its_topic_is_there() -> None:
    of, answers = node(), list[Any]()
    of.send("FindCoordinator", 6, {"key_type": 1, "coordinator_keys": ("x", "y")}, answers.append)
    of.send("FindCoordinator", 3, {"key_type": 1, "key": "z"}, answers.append)
    assert answers == []
    of.settle()
    first, second = answers
    assert [each.error_code for each in first.coordinators] == [ErrorCode.NONE] * 2
    assert (second.error_code, second.node_id) == (ErrorCode.NONE, 1)


def test_no_coordinator_where_its_topic_cannot_be_created(monkeypatch: pytest.MonkeyPatch) -> None:
    of, answers = node(), list[Any]()

    def fails(*_: Any, **__: Any) -> None:
        raise KafkaStorageError("the disk is full")

    monkeypatch.setattr(of.broker.metadata, "append", fails)
    of.send("FindCoordinator", 3, {"key_type": 1, "key": "z"}, answers.append)
    assert answers[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@versions("InitProducerId")
def test_init_producer_id(version: int) -> None:
    of, client = transactional()
    answer = of.ask("InitProducerId", version, transactional_id="x", transaction_timeout_ms=1000)
    identity = client.identity.producer_id, client.identity.producer_epoch + 1
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, *identity)
    idempotent = of.ask("InitProducerId", version, transactional_id=None, transaction_timeout_ms=1000)
    assert (idempotent.producer_id > answer.producer_id, idempotent.producer_epoch) == (True, 0)
    bad = of.ask("InitProducerId", version, transactional_id="x", transaction_timeout_ms=0)
    assert (bad.error_code, bad.producer_id, bad.producer_epoch) == (50, -1, -1)
    if version >= 3:
        fenced = of.ask(
            "InitProducerId", version, transactional_id="x", transaction_timeout_ms=1000,
            producer_id=identity[0], producer_epoch=identity[1] + 7,
        )  # fmt: skip
        old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
        assert fenced.error_code == (new if version >= 4 else old)


def of_producer(client: Producer, epoch: int = 0) -> dict[str, Any]:
    identity = client.identity
    return {
        "transactional_id": client.id,
        "producer_id": identity.producer_id,
        "producer_epoch": identity.producer_epoch + epoch,
    }


@versions("AddPartitionsToTxn")
def test_add_partitions_to_txn(version: int) -> None:
    of, client = transactional()

    def add(*topics: str, epoch: int = 0) -> list[str]:
        wanted = tuple(add_partitions.AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in topics)
        fields = of_producer(client, epoch)
        if version >= 4:
            transaction = add_partitions.AddPartitionsToTxnTransaction(**fields, topics=wanted)
            answer = of.ask("AddPartitionsToTxn", version, transactions=(transaction,))
            (result,) = answer.results_by_transaction
            assert result.transactional_id == "x"
            found = result.topic_results
        else:
            old = {f"v3_and_below_{name}": value for name, value in fields.items()}
            answer = of.ask("AddPartitionsToTxn", version, **old, v3_and_below_topics=wanted)
            found = answer.results_by_topic_v3_and_below
        assert [topic.name for topic in found] == list(topics)
        codes = [each.partition_error_code for topic in found for each in topic.results_by_partition]
        return [ErrorCode(code).name for code in codes]

    assert add("t") == ["NONE"]
    assert add("t", "u") == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert add("t", epoch=1) == ["PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH"]
    if version < 4:
        assert add("__transaction_state") == ["TOPIC_AUTHORIZATION_FAILED"]


@pytest.mark.parametrize("version", [4, 5])
def test_verify_partitions(version: int) -> None:
    of, client = transactional(partitions=2)
    client.send(b"a", 0)
    topics = (add_partitions.AddPartitionsToTxnTopic(name="t", partitions=(0, 1)),)
    transactions = tuple(
        add_partitions.AddPartitionsToTxnTransaction(**of_producer(client), verify_only=True, topics=topics)
        for _ in range(2)
    )
    answer = of.ask("AddPartitionsToTxn", version, transactions=transactions)
    for result in answer.results_by_transaction:
        (topic,) = result.topic_results
        codes = [each.partition_error_code for each in topic.results_by_partition]
        assert codes == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert len(answer.results_by_transaction) == 2
    assert of.ask("AddPartitionsToTxn", version).results_by_transaction == ()


@pytest.mark.parametrize("version", [4, 5])
def test_each_transaction_of_a_batch_is_answered_for_itself(version: int) -> None:
    of, client = transactional(partitions=2)
    client.send(b"a", 0)
    topics = (add_partitions.AddPartitionsToTxnTopic(name="t", partitions=(1,)),)
    known = of_producer(client)
    fields = [known, {**known, "transactional_id": "nobody"}, of_producer(client, 1)]
    transactions = tuple(
        add_partitions.AddPartitionsToTxnTransaction(**each, topics=topics) for each in fields
    )
    results = of.ask("AddPartitionsToTxn", version, transactions=transactions).results_by_transaction
    assert [result.transactional_id for result in results] == ["x", "nobody", "x"]
    codes = [result.topic_results[0].results_by_partition[0].partition_error_code for result in results]
    assert codes == [
        ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.PRODUCER_FENCED
    ]  # fmt: skip


@versions("AddOffsetsToTxn")
def test_add_offsets_to_txn(version: int) -> None:
    of, client = transactional()
    assert of.ask("AddOffsetsToTxn", version, **of_producer(client), group_id="g").error_code == 0
    fenced = of.ask("AddOffsetsToTxn", version, **of_producer(client, 1), group_id="g")
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert fenced.error_code == (new if version >= 2 else old)
    assert of.broker.transactions.describe("x").state == "Ongoing"


@versions("EndTxn")
@pytest.mark.parametrize("committed", [True, False])
def test_end_txn(version: int, committed: bool) -> None:
    of, client = transactional()
    client.send(b"a")
    fenced = of.ask("EndTxn", version, **of_producer(client, 1), committed=committed)
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert fenced.error_code == (new if version >= 2 else old)
    answer = of.ask("EndTxn", version, **of_producer(client), committed=committed)
    identity = (client.identity.producer_id, client.identity.producer_epoch + 1) if version >= 5 else (-1, -1)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, *identity)
    assert of.values() == ([b"a"] if committed else [])


@pytest.mark.parametrize(("verify_only", "answered"), [(False, ["t"]), (True, [])])
def test_a_topic_without_partitions_is_not_verified(verify_only: bool, answered: list[str]) -> None:
    of, client = transactional()
    transaction = add_partitions.AddPartitionsToTxnTransaction(
        **of_producer(client), verify_only=verify_only,
        topics=(add_partitions.AddPartitionsToTxnTopic(name="t"),),
    )  # fmt: skip
    (result,) = of.ask("AddPartitionsToTxn", 4, transactions=(transaction,)).results_by_transaction
    assert [topic.name for topic in result.topic_results] == answered


@versions("WriteTxnMarkers")
def test_write_txn_markers(version: int) -> None:
    of, client = transactional()
    client.send(b"hangs")
    topics = (markers.WritableTxnMarkerTopic(name="t", partition_indexes=(0, 7)),)
    identity = client.identity
    marker = markers.WritableTxnMarker(
        producer_id=identity.producer_id, producer_epoch=identity.producer_epoch, topics=topics
    )
    (answer,) = of.ask("WriteTxnMarkers", version, markers=(marker,)).markers
    codes = {each.partition_index: each.error_code for topic in answer.topics for each in topic.partitions}
    assert (answer.producer_id, codes) == (identity.producer_id, {0: 0, 7: 3})
    assert of.broker.logs[TopicPartition("t", 0)].last_stable_offset == 2
    assert of.ask("WriteTxnMarkers", version).markers == ()


@versions("WriteTxnMarkers")
@pytest.mark.parametrize(("producer_id", "epoch"), [(7, -1), (-1, 0)])
def test_a_marker_of_an_impossible_producer_is_refused(version: int, producer_id: int, epoch: int) -> None:
    of = node()
    topics = (markers.WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),)
    marker = markers.WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, topics=topics)
    (answer,) = of.ask("WriteTxnMarkers", version, markers=(marker,)).markers
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert of.broker.logs[TopicPartition("t", 0)].log_end_offset == 0


@versions("DescribeProducers")
def test_describe_producers(version: int) -> None:
    of, client = transactional()
    client.send(b"a")
    topics = tuple(
        describe_producers.TopicRequest(name=name, partition_indexes=(0,)) for name in ("t", "u", "a b")
    )
    found, missing, illegal = of.ask("DescribeProducers", version, topics=topics).topics
    (producer,) = found.partitions[0].active_producers
    assert (producer.producer_id, producer.current_txn_start_offset) == (client.identity.producer_id, 0)
    assert (producer.last_sequence, producer.coordinator_epoch) == (0, -1)
    assert missing.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert illegal.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@versions("DescribeTransactions")
def test_describe_transactions(version: int) -> None:
    of, client = transactional()
    client.send(b"a")
    answer = of.ask("DescribeTransactions", version, transactional_ids=("x", "y", ""))
    known, unknown, empty = answer.transaction_states
    assert (known.transaction_state, known.producer_id) == ("Ongoing", client.identity.producer_id)
    assert [(topic.topic, topic.partitions) for topic in known.topics] == [("t", (0,))]
    assert (unknown.error_code, empty.error_code) == (105, 42)


@versions("ListTransactions")
def test_list_transactions(version: int) -> None:
    of, client = transactional()
    client.send(b"a")
    answer = of.ask("ListTransactions", version, state_filters=("Ongoing", "Nonsense"))
    assert answer.unknown_state_filters == ("Nonsense",)
    assert [(each.transactional_id, each.transaction_state) for each in answer.transaction_states] == [
        ("x", "Ongoing")
    ]
    if version >= 1:
        assert of.ask("ListTransactions", version, duration_filter=1000).transaction_states == ()
    if version >= 2:
        assert of.ask("ListTransactions", version, transactional_id_pattern="y").transaction_states == ()
        assert of.ask("ListTransactions", version, transactional_id_pattern="(").error_code == 128


@pytest.mark.parametrize("created_by", ["CreateTopics", "Metadata"])
def test_a_client_may_create_the_coordinator_s_topic(created_by: str) -> None:
    of, name = node(), "__transaction_state"
    if created_by == "CreateTopics":
        topics: Any = (create_topics.CreatableTopic(name=name, num_partitions=3, replication_factor=1),)
    else:
        topics = (metadata.MetadataRequestTopic(name=name),)
    of.ask(created_by, 7, topics=topics)
    answer = of.ask("FindCoordinator", 3, key_type=1, key="x")
    assert answer.error_code == ErrorCode.NONE
    count = 3 if created_by == "CreateTopics" else of.broker.config.transaction_state_log_num_partitions
    assert len(of.broker.image.topics[name].partitions) == count
    answer = of.ask("InitProducerId", 5, transactional_id="x", transaction_timeout_ms=1000)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    of.restart()
    assert of.broker.transactions.describe("x").state == "Empty"
