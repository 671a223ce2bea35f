"""Headers and frames: what surrounds the messages, and that records are never copied."""

from __future__ import annotations

import struct

import pytest

from txnkafka.errors import InvalidRequestError
from txnkafka.wire.messages import (
    APIS,
    RequestHeader,
    read_request,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from txnkafka.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from txnkafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from txnkafka.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE, FETCH, SASL_HANDSHAKE, API_VERSIONS, END_TXN = (APIS[key] for key in (0, 1, 17, 18, 26))
HEADER = struct.pack(">hhih", 26, 0, 7, 6) + b"client"


def test_the_client_id_of_a_flexible_header_is_not_compact() -> None:
    request = EndTxnRequest(transactional_id="t", producer_id=1, producer_epoch=2, committed=True)
    (frame,) = write_request(RequestHeader(END_TXN, 3, 9, "me"), request)
    header, body = "001a 0003 00000009 0002 6d65 00", "02 74 0000000000000001 0002 01 00"
    assert frame == bytes.fromhex("0000001b" + header + body)
    assert read_request_header(frame[4:]) == (RequestHeader(END_TXN, 3, 9, "me"), 13)


def test_a_client_id_may_be_null() -> None:
    (frame,) = write_request(RequestHeader(END_TXN, 0, 9), EndTxnRequest())
    header, position = read_request_header(frame[4:])
    assert (header.client_id, position) == (None, 10)


def test_unknown_tagged_fields_of_headers_are_skipped() -> None:
    body = bytes.fromhex("02 74 0000000000000001 0002 01 00")
    frame = struct.pack(">hhih", 26, 3, 7, 6) + b"client" + b"\1\5\2ab" + body
    header, position = read_request_header(frame)
    assert read_request(header, frame, position).transactional_id == "t"
    answer = struct.pack(">i", 7) + b"\1\5\2ab" + bytes.fromhex("00000000 0000 00")
    assert read_response(END_TXN, 3, answer) == (7, EndTxnResponse())


def test_api_versions_has_response_header_0_in_all_versions() -> None:
    response = ApiVersionsResponse(api_keys=(ApiVersion(api_key=18, max_version=4),))
    (frame,) = write_response(API_VERSIONS, 3, 7, response)
    assert frame[4:].hex() == "00000007" + "0000" + "02" + "001200000004" + "00" + "00000000" + "00"
    assert read_response(API_VERSIONS, 3, frame[4:]) == (7, response)


def test_the_answer_to_an_unknown_version_of_api_versions() -> None:
    """As Apache Kafka 4.3.1 answers version 99, correlation id 7."""
    frame = struct.pack(">hhih", 18, 99, 7, 6) + b"client"
    header, _ = read_request_header(frame)
    assert (header.api, header.api_version) == (API_VERSIONS, 99)
    assert not header.api.has(header.api_version)
    response = ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, max_version=4),))
    (answer,) = write_response(header.api, 0, header.correlation_id, response)
    assert answer[4:].hex() == "0000000700230000000100120000" + "0004"


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "RequestHeader: needs 8 bytes, 0 are left (byte 0)"),
        (HEADER[:7], "RequestHeader: needs 8 bytes, 7 are left (byte 0)"),
        (HEADER[:8], "RequestHeader: client_id: needs 2 bytes, 0 are left (byte 8)"),
        (HEADER[:15], "RequestHeader: client_id: needs 6 bytes, 5 are left (byte 10)"),
        (HEADER[:15] + b"\xff", "RequestHeader: client_id: string is not UTF-8 (byte 15)"),
        (b"\3\xe7" + HEADER[2:], "RequestHeader: unknown API key 999 (byte 0)"),
        (b"GET / HTTP/1.1\r\n\r\n", "RequestHeader: unknown API key 18245 (byte 0)"),
        (b"\0\x1a\0\3" + HEADER[4:], "RequestHeader: varint is cut off (byte 16)"),
    ],
)
def test_headers_are_refused(frame: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_request_header(frame)
    assert str(caught.value) == reason


@pytest.mark.parametrize("version", [-1, 6, 99])
def test_a_version_that_is_not_known_is_refused(version: int) -> None:
    frame = struct.pack(">hhih", 26, version, 7, 6) + b"client\0"
    header, position = read_request_header(frame)
    expected = rf"EndTxnRequest version {version}: versions 0 to 5 are known"
    with pytest.raises(InvalidRequestError, match=expected):
        read_request(header, frame, position)
    with pytest.raises(InvalidRequestError, match=expected):
        write_request(header, EndTxnRequest())
    with pytest.raises(InvalidRequestError, match="EndTxnResponse version"):
        write_response(END_TXN, version, 7, EndTxnResponse())


def test_responses_that_are_cut_are_refused() -> None:
    for answer in (b"", b"\0\0\0", b"\0\0\0\7", b"\0\0\0\7\1\5"):
        with pytest.raises(InvalidRequestError):
            read_response(END_TXN, 3, answer)


def test_a_client_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="RequestHeader: client_id: string has 40000 bytes"):
        write_request(RequestHeader(END_TXN, 0, 9, "x" * 40000), EndTxnRequest())


def test_sasl_handshake_is_never_flexible() -> None:
    request = SASL_HANDSHAKE.request(mechanism="PLAIN")
    (frame,) = write_request(RequestHeader(SASL_HANDSHAKE, 1, 9, ""), request)
    assert frame[4:].hex() == "00110001000000090000" + "0005" + b"PLAIN".hex()


def produce(*records: bytes | memoryview | None) -> ProduceRequest:
    partitions = tuple(PartitionProduceData(index=i, records=records[i]) for i in range(len(records)))
    return ProduceRequest(acks=-1, topic_data=(TopicProduceData(name="t", partition_data=partitions),))


@pytest.mark.parametrize("version", [3, 9])
def test_records_are_views_of_the_frame(version: int) -> None:
    request = produce(b"abc", b"", None)
    frame = bytearray(b"".join(write_request(RequestHeader(PRODUCE, version, 1, "c"), request)))
    view = memoryview(frame)[4:]
    header, position = read_request_header(view)
    partitions = read_request(header, view, position).topic_data[0].partition_data
    assert [partition.records for partition in partitions] == [b"abc", b"", None]
    at = frame.index(b"abc")
    frame[at] = ord("x")
    assert partitions[0].records == b"xbc"
    assert partitions[0].records.obj is frame


@pytest.mark.parametrize("version", [4, 12])
def test_records_leave_in_the_buffers_that_hold_them(version: int) -> None:
    records = memoryview(bytes(range(100)))[10:20], b"second", bytearray(b"third"), b"", None
    partitions = tuple(PartitionData(partition_index=i, records=records[i]) for i in range(5))
    response = FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=partitions),))
    buffers = write_response(FETCH, version, 7, response)
    assert [buffer for buffer in buffers if any(buffer is each for each in records)] == list(records[:3])
    assert [buffers.index(each) for each in records[:3]] == [1, 3, 5]
    frame = b"".join(buffers)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    assert read_response(FETCH, version, frame[4:]) == (7, response)
    assert b"".join(write_response(FETCH, version, 7, response)) == frame


def test_a_message_that_ends_with_records_has_no_empty_buffer_behind_them() -> None:
    buffers = write_request(RequestHeader(PRODUCE, 3, 1, "c"), produce(b"abc"))
    assert [bytes(buffer)[-3:] for buffer in buffers] == [b"\0\0\3", b"abc"]


def test_records_of_items_that_are_larger_than_bytes_have_their_size_in_bytes() -> None:
    numbers = memoryview(struct.pack("=3q", 1, 2, 3)).cast("q")
    buffers = write_request(RequestHeader(PRODUCE, 3, 1, "c"), produce(numbers))
    frame = b"".join(buffers)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    assert frame[-28:-24] == struct.pack(">i", 24)
