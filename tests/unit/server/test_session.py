"""The protocol of a connection, without one."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from txnkafka.errors import InvalidRequestError
from txnkafka.server.handlers import SERVED
from txnkafka.server.receive_buffer import COPIED_SIZE, BlockPool
from txnkafka.server.session import (
    MAX_UNANSWERED,
    MAX_UNANSWERED_BYTES,
    MAX_UNSENT_BYTES,
    Request,
    Session,
)
from txnkafka.wire.messages import APIS, RequestHeader, read_response, write_request
from txnkafka.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from txnkafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from txnkafka.wire.messages.fetch import FetchRequest, FetchResponse
from txnkafka.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

END_TXN, FETCH, PRODUCE, API_VERSIONS = APIS[26], APIS[1], APIS[0], APIS[18]
VERSIONS = {END_TXN: 5, FETCH: 12, PRODUCE: 9}


def request(api: Any, correlation_id: int, message: Any) -> bytes:
    header = RequestHeader(api, VERSIONS[api], correlation_id, "test")
    return b"".join(map(bytes, write_request(header, message)))


def end_txn(correlation_id: int) -> bytes:
    return request(END_TXN, correlation_id, EndTxnRequest(transactional_id=f"id-{correlation_id}"))


def produce(correlation_id: int, size: int, byte: bytes = b"\0") -> bytes:
    data = PartitionProduceData(records=byte * size)
    return request(
        PRODUCE, correlation_id, ProduceRequest(topic_data=(TopicProduceData(partition_data=(data,)),))
    )


class Peer:
    """Both ends of a session."""

    def __init__(self) -> None:
        self.session = Session(BlockPool(), 100 << 20, SERVED)

    def send(self, data: bytes) -> list[Request]:
        while data:
            space = self.session.space()
            count = min(len(space), len(data))
            space[:count] = data[:count]
            self.session.received(count)
            data = data[count:]
        return self.requests()

    def requests(self) -> list[Request]:
        found = []
        while (one := self.session.next_request()) is not None:
            found.append(one)
        return found

    def sent(self, step: int = 1 << 30) -> bytes:
        """All bytes that can be sent, taken ``step`` at a time."""
        out = bytearray()
        while buffers := self.session.next_buffers(8):
            part = b"".join(buffers)[:step]
            out += part
            self.session.sent(len(part))
        return bytes(out)


def correlation_ids(data: bytes) -> list[int]:
    found = []
    while data:
        (size,) = struct.unpack_from(">i", data)
        assert size <= len(data) - 4
        found.append(struct.unpack_from(">i", data, 4)[0])
        data = data[4 + size :]
    return found


def test_requests_come_out_in_order() -> None:
    requests = Peer().send(b"".join(map(end_txn, range(5))))
    assert [one.header.correlation_id for one in requests] == [0, 1, 2, 3, 4]
    assert [one.message.transactional_id for one in requests] == [f"id-{i}" for i in range(5)]
    assert {one.header.client_id for one in requests} == {"test"}


@pytest.mark.parametrize("step", [1, 7, 1 << 30])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]])
def test_answers_go_out_in_the_order_of_the_requests(order: list[int], step: int) -> None:
    peer = Peer()
    requests, out = peer.send(b"".join(map(end_txn, range(4)))), b""
    for number in order:
        peer.session.respond(requests[number], EndTxnResponse(producer_id=number, producer_epoch=0))
        out += peer.sent(step)
    assert correlation_ids(out) == [0, 1, 2, 3]
    assert peer.session.is_idle


def test_an_answer_waits_for_those_before_it() -> None:
    peer = Peer()
    first, second = peer.send(end_txn(1) + end_txn(2))
    peer.session.respond(second, EndTxnResponse())
    assert peer.sent() == b""
    assert not peer.session.is_idle
    peer.session.respond(first, None)  # acks 0: it has none, and holds nobody up
    assert correlation_ids(peer.sent()) == [2]


def test_a_request_is_answered_once() -> None:
    peer = Peer()
    (one,) = peer.send(end_txn(1))
    assert not one.is_answered
    peer.session.respond(one, EndTxnResponse())
    assert one.is_answered
    with pytest.raises(ValueError, match="already answered"):
        peer.session.respond(one, EndTxnResponse())
    assert correlation_ids(peer.sent()) == [1]


def test_records_do_not_change_before_the_answer() -> None:
    peer = Peer()
    size = COPIED_SIZE + 1000
    (one,) = peer.send(produce(1, size))
    for number in range(40):
        for other in peer.send(produce(number, size, b"x")):
            peer.session.respond(other, ProduceResponse())
    (topic,) = one.message.topic_data
    assert bytes(topic.partition_data[0].records) == bytes(size)


def test_nothing_is_served_behind_a_fetch() -> None:
    peer = Peer()
    (fetch,) = peer.send(request(FETCH, 1, FetchRequest()) + end_txn(2))
    assert peer.session.is_saturated
    assert peer.session.is_idle  # a stop does not wait for a long poll
    peer.session.respond(fetch, FetchResponse())
    (behind,) = peer.requests()
    assert behind.header.correlation_id == 2


def test_too_many_unanswered() -> None:
    peer = Peer()
    requests = peer.send(b"".join(map(end_txn, range(MAX_UNANSWERED + 3))))
    assert len(requests) == MAX_UNANSWERED
    assert peer.session.is_saturated
    peer.session.respond(requests[0], EndTxnResponse())
    assert len(peer.requests()) == 1


def test_too_many_unanswered_bytes() -> None:
    peer = Peer()
    assert len(peer.send(produce(1, MAX_UNANSWERED_BYTES) + end_txn(2))) == 1
    assert peer.session.is_saturated


def test_too_much_unsent() -> None:
    peer = Peer()
    versions = ApiVersionsResponse(api_keys=(ApiVersion(),) * (MAX_UNSENT_BYTES // 6 + 1))
    header = RequestHeader(API_VERSIONS, 0, 1)
    (one,) = peer.send(b"".join(map(bytes, write_request(header, API_VERSIONS.request()))))
    peer.session.respond(one, versions)
    assert peer.session.is_saturated
    assert peer.send(end_txn(2)) == []
    assert len(peer.sent(100_000)) > MAX_UNSENT_BYTES
    assert [other.header.correlation_id for other in peer.requests()] == [2]


def header(key: int, version: int, rest: bytes = b"\xff\xff") -> bytes:
    body = struct.pack(">hhi", key, version, 7) + rest
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (header(999, 0), "unknown API key 999"),
        (header(17, 1), "SaslHandshake .* is not supported"),
        (header(3, 99, b"\xff\xff\0"), "Metadata version 99"),
        (header(0, 2), "Produce version 2"),
        (header(22, 6, b"\xff\xff\0"), "InitProducerId version 6"),
        (header(26, 5, b"\xff\xff\0"), "EndTxnRequest version 5"),
        (struct.pack(">ih", 2, 3), "RequestHeader"),
    ],
)
def test_what_ends_the_connection(frame: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        Peer().send(frame)


def test_api_versions_in_an_unknown_version() -> None:
    peer = Peer()
    (one,) = peer.send(header(18, 99))
    assert one.header.api_version == 99
    peer.session.respond(
        one, ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, max_version=4),))
    )
    out = peer.sent()
    assert out[4:] == bytes.fromhex("00000007 0023 00000001 0012 0000 0004")
    assert read_response(API_VERSIONS, 0, out[4:])[0] == 7


def test_a_closed_session_forgets_everything() -> None:
    peer = Peer()
    peer.send(end_txn(1))
    peer.session.close()
    assert peer.session.is_idle
    assert peer.sent() == b""


def test_answers_that_wait_for_one_before_them_count() -> None:
    peer = Peer()
    first, second = peer.send(end_txn(0) + produce(1, 100))
    answer = ApiVersionsResponse(api_keys=(ApiVersion(),) * (MAX_UNSENT_BYTES // 6 + 1))
    assert not peer.session.is_saturated
    second.header = second.header._replace(api=API_VERSIONS, api_version=2)
    peer.session.respond(second, answer)
    assert peer.session.is_saturated
    assert peer.session.next_buffers(10) == []
    assert peer.send(end_txn(9)) == []
    peer.session.respond(first, EndTxnResponse())
    size = sum(map(len, peer.session.next_buffers(10)))
    assert size == peer.session.unsent_bytes > MAX_UNSENT_BYTES
    peer.session.sent(size)
    assert len(peer.requests()) == 1
