"""Connections that a request ends, on both event loops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.server.in_process import BY_NAME, WAIT, serve, use_event_loop
from tests.server.serving import EVENT_LOOPS
from tests.unit.broker.node import batch_of
from txnkafka.broker.broker import Broker
from txnkafka.error_codes import ErrorCode
from txnkafka.server.connection import Connection
from txnkafka.wire.messages import RequestHeader, read_response, write_request
from txnkafka.wire.messages.join_group import JoinGroupRequestProtocol
from txnkafka.wire.messages.metadata import MetadataRequestTopic
from txnkafka.wire.messages.produce import PartitionProduceData, TopicProduceData


@pytest.fixture(autouse=True, params=EVENT_LOOPS)
def event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_event_loop(request.param, monkeypatch)


def written(name: str, version: int, **fields: Any) -> bytes:
    """The frame of a request."""
    api = BY_NAME[name]
    return b"".join(map(bytes, write_request(RequestHeader(api, version, 7, "test"), api.request(**fields))))


def produced(topic: str, acks: int) -> bytes:
    """The frame of a Produce request."""
    data = (PartitionProduceData(index=0, records=bytes(batch_of(b"a"))),)
    topics = (TopicProduceData(name=topic, partition_data=data),)
    return written("Produce", 9, acks=acks, timeout_ms=1_000, topic_data=topics)


@pytest.mark.parametrize(
    "ending",
    [b"\0\0\0\n\x03\xe7\0\0\0\0\0\7\xff\xff", b"\xff\xff\xff\xff", produced("missing", 0)],
    ids=["an unknown API", "no frame", "Produce without an answer that fails"],
)
def test_what_came_before_the_end_of_a_connection_is_answered(ending: bytes) -> None:
    """Kafka serves one request after the other: a client that sends several at once does not send again what
    was appended."""

    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        await client.ask("Metadata", 4, topics=(MetadataRequestTopic(name="t"),))
        behind = written("ApiVersions", 2)
        client.writer.write(produced("t", -1) + produced("t", 1) + ending + behind)
        for offset in (0, 1):
            size = int.from_bytes(await asyncio.wait_for(client.reader.readexactly(4), WAIT), "big")
            _, answer = read_response(BY_NAME["Produce"], 9, await client.reader.readexactly(size))
            (partition,) = answer.responses[0].partition_responses
            assert (partition.error_code, partition.base_offset) == (ErrorCode.NONE, offset)
        assert await client.is_closed()

    serve(scenario)


def test_a_client_that_closes_its_side_gets_what_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[Connection] = []
    received = Connection.eof_received
    monkeypatch.setattr(Connection, "eof_received", lambda it: ends.append(it) or received(it))

    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        await client.ask("Metadata", 4, topics=(MetadataRequestTopic(name="t"),))
        begin = broker.begin_flush
        monkeypatch.setattr(broker, "begin_flush", lambda: begin() if ends else None)
        client.writer.write(produced("t", -1) + written("ApiVersions", 2))
        client.writer.write_eof()
        for _ in range(2):
            size = int.from_bytes(await asyncio.wait_for(client.reader.readexactly(4), WAIT), "big")
            await client.reader.readexactly(size)
        assert await client.is_closed()

    serve(scenario)


def test_a_client_that_closes_its_side_while_it_waits_for_others_is_gone() -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        await client.ask("FindCoordinator", 0, key="g")
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"m")
        group = {"group_id": "g", "protocol_type": "consumer", "protocols": (protocol,)}
        client.writer.write(
            written("JoinGroup", 3, **group, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
        )
        client.writer.write_eof()
        assert await client.is_closed()

    serve(scenario, group_initial_rebalance_delay_ms=60_000)


def test_a_connection_that_is_to_end_is_not_read() -> None:
    """Its end waits for the answers before, however long that takes; what comes meanwhile takes no memory."""

    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        await client.ask("FindCoordinator", 0, key="g")
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"m")
        group = {"group_id": "g", "protocol_type": "consumer", "protocols": (protocol,)}
        join = written("JoinGroup", 3, **group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)
        client.writer.write(join + b"\xff\xff\xff\xff")
        client.writer.write(bytes(64 << 20))
        await asyncio.sleep(0.2)
        assert client.writer.transport.get_write_buffer_size() > 0
        assert not client.reader.at_eof()
        client.writer.transport.abort()

    serve(scenario, group_initial_rebalance_delay_ms=60_000)
