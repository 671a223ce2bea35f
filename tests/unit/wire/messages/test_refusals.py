"""Bytes and values that do not follow a table: refused where they are, before anything is made of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.wire.messages.frames import body_of, frame_of, header_size, message_of
from tests.unit.wire.messages.kafka_apis import MESSAGES
from txnkafka.bounds import MAX_MESSAGE_VALUES
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError
from txnkafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from txnkafka.wire.messages.api_versions import ApiVersionsResponse
from txnkafka.wire.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse
from txnkafka.wire.messages.describe_cluster import DescribeClusterResponse
from txnkafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from txnkafka.wire.messages.fetch import FetchRequest, FetchTopic
from txnkafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from txnkafka.wire.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from txnkafka.wire.scalars import write_uvarint

BY_NAME = {(message.name, message.version): message for message in MESSAGES}
MANY, NEGATIVE = "7fffffff", "fffffffe"
MANY_COMPACT = "80 80 80 80 08"  # 2^31, for 2^31 - 1 elements


def refused(name: str, version: int, body: str) -> tuple[str, str, int]:
    """Path, reason and the position in the message of the refusal of bytes in hexadecimal."""
    message = BY_NAME[name, version]
    frame = frame_of(message, message.cls())[: header_size(message)] + bytes.fromhex(body)
    with pytest.raises(InvalidRequestError) as caught:
        message_of(message, frame)
    error = caught.value
    assert (error.message, error.version) == (name, version)
    assert error.position is not None
    return error.path, error.reason, error.position - header_size(message)


END_TXN = "0000000000000001 0000 01"

BYTES = [
    # lengths and counts
    ("Metadata", 1, MANY, "topics: 2147483647 elements do not fit into the 0 bytes left at 0"),
    ("Metadata", 1, MANY + "00" * 16, "topics: 2147483647 elements do not fit into the 16 bytes left at 0"),
    ("Metadata", 1, NEGATIVE, "topics: length -2 is negative at 0"),
    ("Metadata", 9, MANY_COMPACT, "topics: 2147483647 elements do not fit into the 0 bytes left at 0"),
    ("Metadata", 9, "ff ff ff ff 1f", "topics: varint has more than 32 bits at 0"),
    ("Metadata", 9, "ff ff ff ff ff 01", "topics: varint has more than 5 bytes at 0"),
    ("Metadata", 9, "ff ff", "topics: varint is cut off at 0"),
    ("Metadata", 9, "02 09 74", "topics[0].name: needs 8 bytes, 1 are left at 2"),
    ("Metadata", 1, "00000002 0001 61", "topics: 2 elements do not fit into the 3 bytes left at 0"),
    ("Metadata", 1, "00000002 0001 61 fffe", "topics[1].name: length -2 is negative at 7"),
    ("AddPartitionsToTxn", 0, "0000 0000000000000001 0000 00000001 0001 74 20000000 00000000",
     "v3_and_below_topics[0].partitions: 536870912 elements do not fit into the 4 bytes left at 19"),
    ("AddPartitionsToTxn", 0, "0000 0000000000000001 0000 00000001 0001 74 00000002 0000000000",
     "v3_and_below_topics[0].partitions: 2 elements do not fit into the 5 bytes left at 19"),
    ("SyncGroup", 0, "0000 00000001 0000 00000001 0000 7fffffff 00",
     "assignments[0].assignment: needs 2147483647 bytes, 1 are left at 18"),
    ("Produce", 3, "ffff ffff 00000000 00000001 0001 74 00000001 00000000 7fffffff 00",
     "topic_data[0].partition_data[0].records: needs 2147483647 bytes, 1 are left at 27"),
    # fixed sizes
    ("EndTxn", 0, "0001 74 0000000000000001 00", "producer_epoch: needs 2 bytes, 1 are left at 11"),
    ("EndTxn", 0, "0001 74 00000000000000", "producer_id: needs 8 bytes, 7 are left at 3"),
    # text
    ("EndTxn", 0, "0003 61 c3 28" + END_TXN, "transactional_id: string is not UTF-8 at 3"),
    ("EndTxn", 3, "04 61 62 ff" + END_TXN + "00", "transactional_id: string is not UTF-8 at 3"),
    ("EndTxn", 3, "03 ed a0" + END_TXN + "00", "transactional_id: string is not UTF-8 at 1"),
    ("EndTxn", 3, "81 80 02" + "61" * 0x8000,
     "transactional_id: string has 32768 bytes, more than 32767 at 3"),
    # null
    ("EndTxn", 0, "ffff" + END_TXN, "transactional_id: is null, which this version does not allow at 0"),
    ("EndTxn", 3, "00" + END_TXN + "00", "transactional_id: is null, which this version does not allow at 0"),
    ("Metadata", 0, "ffffffff", "topics: is null, which this version does not allow at 0"),
    ("Metadata", 9, "02 00 00", "topics[0].name: is null, which this version does not allow at 1"),
    ("SaslAuthenticate", 0, "ffffffff", "auth_bytes: is null, which this version does not allow at 0"),
    ("DescribeTopicPartitions", 0, "01 00000000 02",
     "cursor: a struct that may be null begins with 1 or -1, not 2 at 5"),
    ("DescribeTopicPartitions", 0, "01 00000000", "cursor: needs 1 bytes, 0 are left at 5"),
    ("DescribeTopicPartitions", 0, "01 00000000 01 02 74 00",
     "cursor.partition_index: needs 4 bytes, 1 are left at 8"),
    # tagged fields
    ("EndTxn", 3, "02 74" + END_TXN, ": varint is cut off at 13"),
    ("EndTxn", 3, "02 74" + END_TXN + MANY_COMPACT,
     ": 2147483648 tagged fields do not fit into the 0 bytes left at 13"),
    ("EndTxn", 3, "02 74" + END_TXN + "01 05 " + MANY_COMPACT + "00",
     ": needs 2147483648 bytes, 1 are left at 20"),
    ("EndTxn", 3, "02 74" + END_TXN + "02 06 00 05 00", ": tag 5 follows tag 6 at 16"),
    ("EndTxn", 3, "02 74" + END_TXN + "02 05 00 05 00", ": tag 5 follows tag 5 at 16"),
    ("Fetch", 12, "ffffffff" + "00" * 21 + "01 01 01 01 00 03 04 61 62 63 00",
     "cluster_id: needs 3 bytes, 2 are left at 32"),
    ("Fetch", 12, "ffffffff" + "00" * 21 + "01 01 01 01 00 03 02 61 62",
     "cluster_id: 1 bytes are left over in the tagged field at 33"),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "body", "expected"), BYTES)
def test_bytes_are_refused_where_they_are_wrong(api: str, version: int, body: str, expected: str) -> None:
    path, reason, position = refused(api + "Request", version, body)
    assert f"{path}: {reason} at {position}" == expected


def test_a_tagged_field_of_an_element_says_in_which() -> None:
    partitions = (PartitionProduceResponse(),) * 2
    topics = (TopicProduceResponse(partition_responses=partitions),)
    body = body_of(BY_NAME["ProduceResponse", 10], ProduceResponse(responses=topics))
    cut = body[:-7] + bytes.fromhex("01 00 01 00")  # current_leader of one byte
    path, reason, _ = refused("ProduceResponse", 10, cut.hex())
    assert path == "responses[0].partition_responses[1].current_leader.leader_id"
    assert reason == "needs 4 bytes, 1 are left"


def test_the_message_of_an_error_says_all_of_it() -> None:
    message = BY_NAME["EndTxnRequest", 0]
    frame = frame_of(message, EndTxnRequest())[: header_size(message)] + b"\xff\xff"
    with pytest.raises(InvalidRequestError) as caught:
        message_of(message, frame)
    reason = "transactional_id: is null, which this version does not allow (byte 16)"
    assert str(caught.value) == f"EndTxnRequest version 0: {reason}"
    assert caught.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("api", "version", "body", "expected"), BYTES[:15])
def test_a_count_or_length_allocates_nothing(api: str, version: int, body: str, expected: str) -> None:
    refused(api + "Request", version, body)  # the reader is made
    tracemalloc.start()
    refused(api + "Request", version, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 10


@pytest.mark.slow
def test_a_message_has_a_limit_of_values() -> None:
    count = MAX_MESSAGE_VALUES // 2  # an element is a struct and its name
    elements = (count + 1).to_bytes(4, "big").hex() + "0000" * (count + 1)
    path, reason, position = refused("MetadataRequest", 1, elements)
    assert (path, position) == ("topics", 0)
    assert reason == f"the message has more than {MAX_MESSAGE_VALUES} values"
    message = BY_NAME["MetadataRequest", 1]
    frame = frame_of(message, MetadataRequest(topics=()))[: header_size(message)]
    read = message_of(message, frame + count.to_bytes(4, "big") + b"\0\0" * count)
    assert len(read.topics) == count


def test_the_limit_of_values_is_for_the_whole_message() -> None:
    numbers = MAX_MESSAGE_VALUES // 3
    topic = "0000" + numbers.to_bytes(4, "big").hex() + "00000000" * numbers
    fields = "0000 0000000000000001 0000"
    path, reason, _ = refused("AddPartitionsToTxnRequest", 0, fields + "00000003" + topic * 3)
    assert path == "v3_and_below_topics[2].partitions"
    assert reason == f"the message has more than {MAX_MESSAGE_VALUES} values"


@pytest.mark.slow
def test_unknown_tagged_fields_count_as_values() -> None:
    tags = b"".join(tag_bytes(tag) + b"\0" for tag in range(MAX_MESSAGE_VALUES + 1))
    body = bytes.fromhex("02 74" + END_TXN) + tag_bytes(MAX_MESSAGE_VALUES + 1) + tags
    _, reason, position = refused("EndTxnRequest", 3, body.hex())
    assert (reason, position) == (f"the message has more than {MAX_MESSAGE_VALUES} values", 13)


def tag_bytes(value: int) -> bytes:
    out = bytearray()
    write_uvarint(out, value)
    return bytes(out)


# Values


def write_refused(name: str, version: int, value: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        frame_of(BY_NAME[name, version], value)
    assert caught.value.position is None
    return f"{caught.value.path}: {caught.value.reason}"


def produced(**partition: Any) -> ProduceRequest:
    partitions = (PartitionProduceData(index=1), PartitionProduceData(**partition))
    return ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=partitions),))


VALUES: list[tuple[str, int, Callable[[], Any], str]] = [
    ("EndTxnRequest", 0, lambda: EndTxnRequest(transactional_id=None),  # type: ignore[arg-type]
     "transactional_id: is null, which this version does not allow"),
    ("EndTxnRequest", 0, lambda: EndTxnRequest(producer_epoch=1 << 15), "producer_epoch: 32768 is no int16"),
    ("EndTxnRequest", 0, lambda: EndTxnRequest(producer_id=None),  # type: ignore[arg-type]
     "producer_id: is null, which this version does not allow"),
    ("EndTxnRequest", 0, lambda: EndTxnRequest(committed=None),  # type: ignore[arg-type]
     "committed: is null, which this version does not allow"),
    ("EndTxnRequest", 0, lambda: EndTxnRequest(committed="no"),  # type: ignore[arg-type]
     "committed: 'no' is no bool"),
    ("ApiVersionsResponse", 3, lambda: ApiVersionsResponse(zk_migration_ready=None),  # type: ignore[arg-type]
     "zk_migration_ready: is null, which this version does not allow"),
    ("MetadataRequest", 9, lambda: MetadataRequest(topics=(None,)),  # type: ignore[arg-type]
     "topics[0]: is null, which this version does not allow"),
    ("EndTxnRequest", 0, lambda: EndTxnRequest(producer_id=1 << 70),
     "producer_id: an integer of 71 bits is no int64"),
    ("EndTxnRequest", 3, lambda: EndTxnRequest(transactional_id=b"t"),  # type: ignore[arg-type]
     "transactional_id: b't' is no string"),
    ("EndTxnRequest", 3, lambda: EndTxnRequest(transactional_id="x" * 32768),
     "transactional_id: string has 32768 bytes, more than 32767"),
    ("EndTxnRequest", 3, lambda: EndTxnRequest(transactional_id="\ud800"),
     "transactional_id: '\\ud800' has a lone surrogate, which UTF-8 cannot encode"),
    ("ProduceRequest", 9, lambda: produced(index=1 << 31),
     "topic_data[0].partition_data[1].index: 2147483648 is no int32"),
    ("ProduceRequest", 9, lambda: produced(records="text"),
     "topic_data[0].partition_data[1].records: 'text' is no bytes"),
    ("ProduceRequest", 13, lambda: ProduceRequest(topic_data=(TopicProduceData(topic_id="short"),)),
     "topic_data[0].topic_id: 'short' is no uuid of 22 characters in base64"),
    ("ProduceRequest", 9, lambda: ProduceRequest(topic_data=None),  # type: ignore[arg-type]
     "topic_data: is null, which this version does not allow"),
    ("MetadataRequest", 0, lambda: MetadataRequest(topics=None),
     "topics: is null, which this version does not allow"),
    ("MetadataRequest", 9, lambda: MetadataRequest(topics=(MetadataRequestTopic(name=None),)),
     "topics[0].name: is null, which this version does not allow"),
    ("MetadataRequest", 3, lambda: MetadataRequest(allow_auto_topic_creation=False),
     "allow_auto_topic_creation: this version has no such field for False"),
    ("FetchRequest", 4, lambda: FetchRequest(forgotten_topics_data=None),  # type: ignore[arg-type]
     "forgotten_topics_data: this version has no such field for None"),
    ("FetchRequest", 15, lambda: FetchRequest(replica_state=None),  # type: ignore[arg-type]
     "replica_state: is null, which this version does not allow"),
    ("AddPartitionsToTxnRequest", 4, lambda: AddPartitionsToTxnRequest(v3_and_below_transactional_id="t"),
     "v3_and_below_transactional_id: this version has no such field for 't'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "make", "expected"), VALUES)
def test_values_are_refused_by_their_names(
    name: str, version: int, make: Callable[[], Any], expected: str
) -> None:
    assert write_refused(name, version, make()) == expected


def test_what_a_version_lacks_is_dropped_if_it_is_ignorable() -> None:
    message = BY_NAME["EndTxnResponse", 4]
    assert body_of(message, EndTxnResponse(producer_id=5)) == body_of(message, EndTxnResponse())


def test_a_list_is_as_good_as_a_tuple() -> None:
    topics = [AddPartitionsToTxnTopic(name="t", partitions=[1, 2])]  # type: ignore[arg-type]
    request = AddPartitionsToTxnRequest(v3_and_below_topics=topics, transactions=[])  # type: ignore[arg-type]
    message = BY_NAME["AddPartitionsToTxnRequest", 3]
    (topic,) = message_of(message, frame_of(message, request)).v3_and_below_topics
    assert topic == AddPartitionsToTxnTopic(name="t", partitions=(1, 2))
    fetch = BY_NAME["FetchRequest", 4]
    nothing: Any = []  # of a field that version 4 does not have
    assert frame_of(fetch, FetchRequest(forgotten_topics_data=nothing)) == frame_of(fetch, FetchRequest())


def test_tagged_fields_are_written_if_they_differ_from_their_defaults() -> None:
    message = BY_NAME["ProduceResponse", 10]
    leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=4)
    partitions = (PartitionProduceResponse(current_leader=leader),)
    response = ProduceResponse(responses=(TopicProduceResponse(partition_responses=partitions),))
    body = body_of(message, response)
    assert bytes.fromhex("01 00 09 00000003 00000004 00") in body
    plain = body_of(BY_NAME["ApiVersionsResponse", 3], ApiVersionsResponse())
    assert plain == bytes.fromhex("0000 01 00000000 00")


def test_a_struct_that_may_be_null_has_its_presence_before_it() -> None:
    message = BY_NAME["ConsumerGroupHeartbeatResponse", 0]
    absent = body_of(message, ConsumerGroupHeartbeatResponse())
    present = body_of(message, ConsumerGroupHeartbeatResponse(assignment=Assignment()))
    assert absent[-2:].hex() == "ff00"
    assert present[-4:].hex() == "01010000"


def test_defaults_are_kafkas() -> None:
    assert DescribeClusterResponse().cluster_authorized_operations == -(1 << 31)
    assert FetchRequest().max_bytes == (1 << 31) - 1
    assert FetchTopic().topic_id == "A" * 22
    assert PartitionProduceData().records is None
