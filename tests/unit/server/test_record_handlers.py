"""Produce and Fetch in each of their versions on a broker in memory, through bytes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import batch_of
from tests.unit.server.wire_node import WireNode, node, topic_id, transactional, versions
from txnkafka.error_codes import ErrorCode
from txnkafka.server.peer import CloseConnection
from txnkafka.storage.log.log_slice import LogSlice
from txnkafka.wire.messages import fetch, produce


def produced(of: WireNode, version: int, records: Any, index: int = 0, **fields: Any) -> Any:
    """The answer for one partition."""
    data = produce.PartitionProduceData(index=index, records=records)
    topic = {"topic_id": topic_id(of)} if version >= 13 else {"name": "t"}
    topics = (produce.TopicProduceData(partition_data=(data,), **topic),)
    answer = of.ask("Produce", version, topic_data=topics, **{"acks": -1, **fields})
    if not isinstance(answer, produce.ProduceResponse):
        return answer
    ((partition,),) = (found.partition_responses for found in answer.responses)
    return partition


@versions("Produce")
def test_produce(version: int) -> None:
    of = node()
    answer = produced(of, version, batch_of(b"a", b"b"))
    assert (answer.index, answer.error_code, answer.base_offset) == (0, ErrorCode.NONE, 0)
    assert of.values() == [b"a", b"b"]
    assert produced(of, version, batch_of(b"c")).base_offset == 2
    missing = produced(of, version, batch_of(b"d"), index=7)
    assert (missing.error_code, missing.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_produce_to_a_topic_id_that_nobody_has() -> None:
    data = (produce.PartitionProduceData(records=batch_of(b"a")),)
    topics = (produce.TopicProduceData(topic_id="0" * 21 + "A", partition_data=data),)
    answer = node().ask("Produce", 13, acks=-1, topic_data=topics)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert isinstance(node().ask("Produce", 13, acks=0, topic_data=topics), CloseConnection)


def test_produce_with_acks_0_has_no_answer() -> None:
    of = node()
    assert produced(of, 9, batch_of(b"a"), acks=0) is None
    assert of.values() == [b"a"]
    refused = produced(of, 9, batch_of(b"a"), acks=0, index=9)
    assert refused == CloseConnection("produce with acks 0 failed for t-9: UNKNOWN_TOPIC_OR_PARTITION")


def test_what_is_said_of_produce_with_acks_0_is_short() -> None:
    """It is logged, and names that clients invent may be long and many."""
    data = (produce.PartitionProduceData(records=batch_of(b"a")),)
    topics = [
        produce.TopicProduceData(name=f"{i}{chr(1) * 20_000}", partition_data=data) for i in range(1_004)
    ]
    (refused,) = {node().ask("Produce", 9, acks=0, topic_data=tuple(topics))}
    assert refused.reason.endswith("…: UNKNOWN_TOPIC_OR_PARTITION and 1,001 more")
    assert refused.reason.count("UNKNOWN_TOPIC_OR_PARTITION") == 3
    assert len(refused.reason) < 1_000


@versions("Produce")
def test_produce_refuses(version: int) -> None:
    of = node()
    assert produced(of, version, None).error_code == ErrorCode.INVALID_RECORD
    assert produced(of, version, batch_of(b"a"), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    zstd = produced(of, version, batch_with_codec_zstd())
    old = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (zstd.error_code == old) == (version < 7)
    assert of.ask("Produce", version, acks=-1).responses == ()


def batch_with_codec_zstd() -> bytes:
    batch = bytearray(batch_of(b"a"))
    batch[22] |= 4  # the codec of the attributes; the CRC is wrong now
    return bytes(batch)


@versions("Produce")
def test_produce_in_a_transaction(version: int) -> None:
    of, client = transactional()
    answer = produced(of, version, client.batch(0, b"a"), transactional_id="x")
    if version >= 12:
        assert answer.error_code == ErrorCode.NONE  # the partition joins by itself
    else:
        old, new = ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE
        assert answer.error_code == (new if version >= 11 else old)


@pytest.mark.parametrize("producer_id", [-1, 7])
def test_a_transactional_batch_needs_a_transactional_id(producer_id: int) -> None:
    of = node()
    batch = bytearray(batch_of(b"a"))
    batch[22] |= 0x10  # transactional, in the attributes
    batch[43:51] = producer_id.to_bytes(8, "big", signed=True)
    answer = produced(of, 9, bytes(batch))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("batch", "error", "start"),
    [
        (bytes(batch_of(b"a"))[:-1], ErrorCode.INVALID_RECORD, -1),
        (bytes(batch_of(b"a")) * 2, ErrorCode.INVALID_RECORD, -1),
        (bytes(batch_of(b"a"))[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE, -1),
        (
            bytes(batch_of(b"a", producer_id=7, producer_epoch=0, base_sequence=9)),
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            0,
        ),
    ],
)  # fmt: skip
def test_what_a_refusal_says_of_the_log_start(batch: bytes, error: ErrorCode, start: int) -> None:
    """As in Kafka: what never reached the log has none."""
    of = node()
    produced(of, 9, bytes(batch_of(b"a", producer_id=7, producer_epoch=0, base_sequence=0)))
    answer = produced(of, 9, batch)
    assert (answer.error_code, answer.log_start_offset) == (error, start)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "error", "diverging"),
    [
        (1, 0, ErrorCode.NONE, (-1, -1)),
        (1, 1, ErrorCode.OFFSET_OUT_OF_RANGE, (-1, -1)),
        (2, 0, ErrorCode.NONE, (0, 1)),
    ],
)
def test_a_client_with_other_records_is_told_where_they_diverge(
    offset: int, last_epoch: int, error: ErrorCode, diverging: tuple[int, int]
) -> None:
    of = node()
    produced(of, 9, batch_of(b"a"))
    wanted = fetch.FetchPartition(
        fetch_offset=offset, partition_max_bytes=1 << 20, last_fetched_epoch=last_epoch
    )
    (topic,) = of.ask("Fetch", 12, topics=(fetch.FetchTopic(topic="t", partitions=(wanted,)),)).responses
    (data,) = topic.partitions
    assert data.error_code == error
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == diverging


def fetched(of: WireNode, version: int, offset: int = 0, epoch: int = -1, **fields: Any) -> Any:
    topic = {"topic_id": topic_id(of)} if version >= 13 else {"topic": "t"}
    partition = fetch.FetchPartition(
        fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
    )
    topics = (fetch.FetchTopic(partitions=(partition,), **topic),)
    return of.ask("Fetch", version, **{"topics": topics, "min_bytes": 1, **fields})


@versions("Fetch")
@pytest.mark.parametrize("level", [0, 1])
def test_fetch(version: int, level: int) -> None:
    of, client = transactional()
    batch = batch_of(b"a")
    produced(of, 9, batch)
    client.send(b"open")
    ((data,),) = (found.partitions for found in fetched(of, version, isolation_level=level).responses)
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (ErrorCode.NONE, 2, 1)
    assert data.aborted_transactions == (() if level else None)
    assert (len(data.records) == len(batch)) == bool(level)
    ((outside,),) = (found.partitions for found in fetched(of, version, 99).responses)
    assert (outside.error_code, outside.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert not outside.records


@pytest.mark.parametrize("version", range(9, 19))
def test_a_client_with_an_older_leader_epoch_is_told_the_new_one(version: int) -> None:
    of = node()
    of.restart()
    answer = fetched(of, version, epoch=0)
    ((data,),) = (found.partitions for found in answer.responses)
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    leader = (data.current_leader.leader_id, data.current_leader.leader_epoch)
    endpoints = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
    assert leader == ((1, 1) if version >= 16 else (-1, -1))
    assert endpoints == ([(1, "localhost", 9092)] if version >= 16 else [])
    for epoch, error in ((1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        answer = fetched(of, version, epoch=epoch)
        ((data,),) = (found.partitions for found in answer.responses)
        assert (data.error_code, data.current_leader.leader_id) == (error, -1)
        assert not answer.node_endpoints


@versions("Fetch")
def test_fetch_of_an_aborted_transaction(version: int) -> None:
    of, client = transactional()
    client.send(b"no")
    client.end(commit=False)
    ((data,),) = (found.partitions for found in fetched(of, version, isolation_level=1).responses)
    (aborted,) = data.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (client.identity.producer_id, 0)


def test_fetch_of_what_there_is_not() -> None:
    of = node()
    for version, topic, error in (
        (12, {"topic": "u"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (13, {"topic_id": "0" * 21 + "A"}, ErrorCode.UNKNOWN_TOPIC_ID),
    ):
        topics = (fetch.FetchTopic(partitions=(fetch.FetchPartition(),), **topic),)
        answer = of.ask("Fetch", version, topics=topics, min_bytes=1, max_wait_ms=60_000)
        ((data,),) = (found.partitions for found in answer.responses)
        assert data.error_code == error


@pytest.mark.parametrize("version", [9, 10])
def test_old_consumers_do_not_get_zstd(version: int) -> None:
    of = WireNode()
    of.create("t", 1, compression_type="zstd")
    ((data,),) = (found.partitions for found in fetched(of, version).responses)
    expected = ErrorCode.NONE if version >= 10 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert data.error_code == expected


def test_a_fetch_waits_until_records_come_and_can_be_withdrawn() -> None:
    of, answers = node(), list[Any]()
    topics = (fetch.FetchTopic(topic="t", partitions=(fetch.FetchPartition(partition_max_bytes=1 << 20),)),)
    wanted = {"topics": topics, "min_bytes": 1, "max_wait_ms": 60_000}
    withdraw = of.send("Fetch", 12, wanted, answers.append)
    of.send("Fetch", 12, wanted, answers.append)
    assert answers == []
    withdraw()
    produced(of, 9, batch_of(b"a"))
    ((data,),) = (found.partitions for answer in answers for found in answer.responses)
    assert len(data.records) == len(batch_of(b"a"))


@pytest.mark.parametrize("version", [5, 6])
def test_records_that_cannot_be_read(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    of = node()
    of.append(batch_of(b"a"))

    def fails(_: LogSlice) -> memoryview:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(LogSlice, "read", fails)
    ((data,),) = (found.partitions for found in fetched(of, version).responses)
    old, new = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR
    assert data.error_code == (new if version >= 6 else old)
    assert (data.high_watermark, len(data.records)) == (-1, 0)
