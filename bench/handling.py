"""Requests through the session and the handlers of the server, bytes in and bytes out, without sockets and
without waiting for a disk: what one request costs the thread of the server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.harness import DisagreementError, Timing, timed
from bench.in_process import PARTITION, TRANSACTIONAL_ID, Host
from bench.recovering import MEMORY
from bench.servers import fresh
from txnkafka._core.encode import encode_batch
from txnkafka.env import SystemClock
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.handlers import SERVED
from txnkafka.server.peer import Node, Peer
from txnkafka.server.receive_buffer import BlockPool
from txnkafka.server.session import Request, Session
from txnkafka.wire.fields import fields_of, is_message
from txnkafka.wire.messages import APIS, RequestHeader, read_response, write_request
from txnkafka.wire.messages.api_versions import ApiVersionsRequest
from txnkafka.wire.messages.end_txn import EndTxnRequest
from txnkafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from txnkafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from txnkafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

__all__ = ["KINDS", "HandlerSide"]

PIECE = 16 << 10  # bytes that come at once
BUFFERS = 1024
READ_COMMITTED = 1
LATEST = -1
NAMES = {api.name: api for api in APIS.values()}
# the last versions with names of topics
VERSIONS = {"ApiVersions": 4, "Metadata": 12, "Produce": 12, "Fetch": 12, "ListOffsets": 10, "EndTxn": 5}
Kind = Callable[["HandlerSide", int], Iterator[tuple[str, Any]]]


def _plain(name: str, request: Any) -> Kind:
    return lambda side, count: ((name, request) for _ in range(count))


def framed(name: str, version: int, request: Any, number: int = 0) -> bytes:
    """Return the bytes of a request, with its size in front."""
    header = RequestHeader(NAMES[name], version, number, "bench")
    return b"".join(write_request(header, request))


def _batch(*, producer_id: int = -1, producer_epoch: int = -1, number: int = 0) -> bytearray:
    return encode_batch(
        [(None, b"%0100d" % number, SystemClock().now_ms())],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1 if producer_id < 0 else 0,
        transactional=producer_id >= 0,
    )


def produce_request(
    transactional_id: str | None = None, *, producer_id: int = -1, producer_epoch: int = -1
) -> ProduceRequest:
    """Return a Produce request of one record."""
    return _produce(_batch(producer_id=producer_id, producer_epoch=producer_epoch), transactional_id)


def _produce(batch: bytearray, transactional_id: str | None = None) -> ProduceRequest:
    partition = PartitionProduceData(index=PARTITION.partition, records=batch)
    topics = (TopicProduceData(name=PARTITION.topic, partition_data=(partition,)),)
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=topics)


def _transactions(side: HandlerSide, count: int) -> Iterator[tuple[str, Any]]:
    """Requests of transactions of one record: with each the epoch of the producer grows (KIP-890)."""
    for _ in range(count // 2):
        identity = {"producer_id": side.producer_id, "producer_epoch": side.epoch}
        yield "Produce", _produce(_batch(**identity), TRANSACTIONAL_ID)
        yield "EndTxn", EndTxnRequest(transactional_id=TRANSACTIONAL_ID, committed=True, **identity)
        side.epoch += 1


def _fetch() -> FetchRequest:
    partition = FetchPartition(partition=PARTITION.partition, fetch_offset=0, partition_max_bytes=1)
    topics = (FetchTopic(topic=PARTITION.topic, partitions=(partition,)),)
    return FetchRequest(max_wait_ms=0, min_bytes=1, isolation_level=READ_COMMITTED, topics=topics)


def _list_offsets() -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=PARTITION.partition, timestamp=LATEST)
    topics = (ListOffsetsTopic(name=PARTITION.topic, partitions=(partition,)),)
    return ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=topics)


# a name of the row, and what gives (API, request) for so many requests of a round
KINDS: dict[str, Kind] = {
    "ApiVersions": _plain(
        "ApiVersions", ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    ),
    "Metadata, one topic": _plain(
        "Metadata", MetadataRequest(topics=(MetadataRequestTopic(name=PARTITION.topic),))
    ),
    "ListOffsets": _plain("ListOffsets", _list_offsets()),
    "Produce, one record": _plain("Produce", _produce(_batch())),
    "Fetch, one record": _plain("Fetch", _fetch()),
    "Produce and EndTxn": _transactions,
}


class Wire:
    """One connection to a broker."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._session = Session(BlockPool(), host.broker.config.socket_request_max_bytes, SERVED)
        self._node = Node("127.0.0.1", 9092, FetchSessions())
        self._dispatcher = Dispatcher(host.broker, host.clock.now_ms)

    def send(self, content: memoryview) -> bytearray:
        """Serve what came; returns what went out."""
        session, sent = self._session, bytearray()
        while len(content):
            space = session.space()
            count = min(len(space), len(content), PIECE)
            space[:count] = content[:count]
            content = content[count:]
            session.received(count)
            while (request := session.next_request()) is not None:
                self._serve(request)
            sent += self.answers()
        return sent

    def answers(self) -> bytes:
        """What is to be sent."""
        buffers = self._session.next_buffers(BUFFERS)
        self._session.sent(sum(map(len, buffers)))
        return b"".join(buffers)

    def _serve(self, request: Request) -> None:
        header = request.header
        peer = Peer(self._node, header.client_id)
        reply = partial(self._session.respond, request)
        self._dispatcher.call(header.api, header.api_version, request.message, peer, reply)


class HandlerSide:
    """``count`` requests of one of the ``KINDS`` a round."""

    def __init__(self, kind: str, count: int) -> None:
        self.name = self.output = kind
        self._kind = KINDS[kind]
        self._count = count
        self._directory = fresh(f"handlers {kind}", MEMORY / "txnkafka-bench")
        self._host: Host | None = None
        self.producer_id = -1
        self.epoch = 0

    def warm(self) -> None:
        """Open a broker with a record to fetch, and serve two rounds: segments have names after the first."""
        self._host = Host(self._directory / "data", "page_cache")
        identity = self._host.init_producer_id()
        self.producer_id, self.epoch = identity.producer_id, identity.producer_epoch
        self._wire = Wire(self._host)
        self._serve([("Produce", _produce(_batch()))])
        self.run()

    def run(self) -> Timing:
        """One round; making the requests and flushing are not timed."""
        timing = self._serve(list(self._kind(self, self._count)))
        return Timing(*timing, self._count)

    def _serve(self, requests: list[tuple[str, Any]]) -> tuple[float, float]:
        frames = bytearray()
        for number, (name, request) in enumerate(requests):
            frames += framed(name, VERSIONS[name], request, number)
        timing: list[tuple[float, float]] = []
        with timed(timing):
            answers = self._wire.send(memoryview(frames))
        self._host.idle()
        answers += self._wire.answers()
        self._check(requests, answers)
        return timing[0]

    def _check(self, requests: list[tuple[str, Any]], answers: bytearray) -> None:
        """Every request was answered, and without an error."""
        position = 0
        for number, (name, _) in enumerate(requests):
            end = position + 4 + int.from_bytes(answers[position : position + 4], "big")
            correlation_id, answer = read_response(NAMES[name], VERSIONS[name], answers[position + 4 : end])
            if correlation_id != number or has_error(answer):
                raise DisagreementError(f"{self.name}: request {number} is answered {answer}")
            position = end

    def digest(self) -> object:
        """None: other sides have other requests."""
        return None

    def close(self) -> None:
        """Stop the broker."""
        if self._host is not None:
            self._host.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def has_error(answer: object) -> bool:
    """Whether an error code somewhere in a message is not 0."""
    if isinstance(answer, tuple):
        return any(map(has_error, answer))
    if not is_message(answer):
        return False
    fields = ((field.name, getattr(answer, field.name)) for field in fields_of(type(answer)))
    return any(value != 0 if name == "error_code" else has_error(value) for name, value in fields)
