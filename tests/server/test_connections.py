"""Connections of a server in this process, on both event loops: what fails, what is idle, and how many there
may be."""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from typing import Any

import pytest

from tests.server.in_process import BY_NAME, WAIT, Client, serve, use_event_loop
from tests.server.serving import EVENT_LOOPS
from tests.unit.broker.node import batch_of
from txnkafka.broker.broker import Broker, open_broker
from txnkafka.broker.requests import ProduceRequest
from txnkafka.broker.topics.topics import Topics
from txnkafka.env import SystemClock
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import handler_of
from txnkafka.server.tcp import Server, new_event_loop
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.messages import RequestHeader, write_request
from txnkafka.wire.messages.create_topics import CreatableTopic
from txnkafka.wire.messages.fetch import FetchPartition, FetchTopic
from txnkafka.wire.messages.join_group import JoinGroupRequestProtocol
from txnkafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from txnkafka.wire.messages.produce import PartitionProduceData, TopicProduceData

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.fixture(autouse=True, params=EVENT_LOOPS)
def event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_event_loop(request.param, monkeypatch)


def fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a bug")


def test_an_exception_in_a_late_reply_is_the_answer_to_that_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    created = Topics._created

    def broken(self: Topics, result: Any) -> None:
        fails() if result.name == "bad" else created(self, result)

    async def scenario(broker: Broker, connect: Any) -> None:
        client, other = await connect(), await connect()
        topics = (CreatableTopic(name="bad", num_partitions=1, replication_factor=1),)
        with monkeypatch.context() as patch:
            patch.setattr(Topics, "_created", broken)
            failed, metadata = await asyncio.gather(
                client.ask("CreateTopics", 7, topics=topics), other.ask("Metadata", 12, topics=())
            )
        (topic,) = failed.topics
        assert (topic.name, topic.error_code) == ("bad", UNKNOWN)
        assert len(metadata.brokers) == 1
        topics = (CreatableTopic(name="good", num_partitions=1, replication_factor=1),)
        answer = await client.ask("CreateTopics", 7, topics=topics)
        assert answer.topics[0].error_code == ErrorCode.NONE
        assert not other.reader.at_eof()

    serve(scenario)
    assert "a bug" in caplog.text


def test_an_exception_of_a_fetch_that_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        topics = (CreatableTopic(name="t", num_partitions=1, replication_factor=1),)
        await client.ask("CreateTopics", 7, topics=topics)
        wanted = (FetchTopic(topic="t", partitions=(FetchPartition(partition=0, partition_max_bytes=100),)),)
        asked = asyncio.create_task(client.ask("Fetch", 6, max_wait_ms=200, min_bytes=1, topics=wanted))
        while not len(broker.fetches):
            await asyncio.sleep(0)
        with monkeypatch.context() as patch:
            patch.setattr(broker.fetches, "_found", fails)
            answer = await asked
        assert answer.responses[0].partitions[0].error_code == UNKNOWN
        answer = await client.ask("Fetch", 6, max_wait_ms=1, min_bytes=1, topics=wanted)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE

    serve(scenario)


def test_an_exception_of_a_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        with monkeypatch.context() as patch:
            patch.setattr(broker, "list_offsets", fails)
            topics = (ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(partition_index=3),)),)
            answer = await client.ask("ListOffsets", 7, topics=topics)
        (partition,) = answer.topics[0].partitions
        assert (partition.partition_index, partition.error_code) == (3, UNKNOWN)
        assert (await client.ask("ApiVersions", 2)).error_code == ErrorCode.NONE

    serve(scenario)


def test_the_bytes_of_a_request_that_failed_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes at once; a batch that waits for the coordinator may still be appended later."""
    kept: list[Any] = []

    def broken(_: Broker, message: Any, *__: Any) -> None:
        kept.append(message.topic_data[0].partition_data[0].records)
        fails()

    monkeypatch.setattr(
        "txnkafka.server.dispatch.handler_of",
        lambda api: broken if api.name == "Produce" else handler_of(api),
    )

    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        for letter in (b"a", b"b"):
            data = (PartitionProduceData(index=0, records=letter * 20_000),)
            topics = (TopicProduceData(name="t", partition_data=data),)
            answer = await client.ask("Produce", 9, acks=-1, topic_data=topics)
            assert answer.responses[0].partition_responses[0].error_code == UNKNOWN
        assert [bytes(each[:2]) for each in kept] == [b"aa", b"bb"]

    serve(scenario)


def test_an_exception_of_what_is_due_by_the_clock(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        with monkeypatch.context() as patch:
            patch.setattr(broker.transactions, "advance", fails)
            assert (await client.ask("ApiVersions", 2)).error_code == ErrorCode.NONE
            topics = (CreatableTopic(name="t", num_partitions=1, replication_factor=1),)
            answer = await client.ask("CreateTopics", 7, topics=topics)
            assert answer.topics[0].error_code == ErrorCode.NONE

    serve(scenario)
    assert "it is retried in a second" in caplog.text


def test_an_idle_connection_is_closed() -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        idle, busy = await connect(), await connect()
        waiting = asyncio.create_task(idle.is_closed())
        while not waiting.done():
            assert (await busy.ask("ApiVersions", 2)).error_code == ErrorCode.NONE
            await asyncio.sleep(0.01)
        assert await waiting
        assert (await busy.ask("ApiVersions", 2)).error_code == ErrorCode.NONE

    serve(scenario, connections_max_idle_ms=300)


def test_a_fetch_that_waits_for_too_long_is_closed() -> None:
    """Its client may be gone: nothing more is read from the connection. Apache Kafka closes it, too."""

    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        topics = (CreatableTopic(name="t", num_partitions=1, replication_factor=1),)
        await client.ask("CreateTopics", 7, topics=topics)
        wanted = (FetchTopic(topic="t", partitions=(FetchPartition(partition=0, partition_max_bytes=100),)),)
        fetch = BY_NAME["Fetch"].request(max_wait_ms=2**31 - 1, min_bytes=1, topics=wanted)
        client.writer.writelines(write_request(RequestHeader(BY_NAME["Fetch"], 6, 7, "test"), fetch))
        while not len(broker.fetches):
            await asyncio.sleep(0)
        assert await client.is_closed()
        assert not len(broker.fetches)

    serve(scenario, connections_max_idle_ms=200)


def test_what_is_sent_keeps_a_connection() -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        client = await connect()
        topics = (CreatableTopic(name="t", num_partitions=1, replication_factor=1),)
        await client.ask("CreateTopics", 7, topics=topics)
        wanted = (FetchTopic(topic="t", partitions=(FetchPartition(partition=0, partition_max_bytes=100),)),)
        answer = await client.ask("Fetch", 6, max_wait_ms=1_300, min_bytes=1, topics=wanted)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        await asyncio.sleep(1.3)
        assert (await client.ask("ApiVersions", 2)).error_code == ErrorCode.NONE

    serve(scenario, connections_max_idle_ms=2_000)


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_ip"])
def test_connections_that_are_too_many_are_closed(limit: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        first, second = await connect(), await connect()
        for each in (first, second):
            assert (await each.ask("ApiVersions", 2)).error_code == ErrorCode.NONE
        third = await connect()
        assert await third.is_closed()
        first.writer.close()
        await first.writer.wait_closed()
        while True:  # until the server has heard of it
            fourth = await connect()
            try:
                answer = await fourth.ask("ApiVersions", 2)
            except (asyncio.IncompleteReadError, ConnectionError):
                continue
            assert answer.error_code == ErrorCode.NONE
            break

    serve(scenario, **{limit: 2})
    assert "a limit is reached" in caplog.text


def test_connections_leave_descriptors_for_files(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (9, 9))

    async def scenario(broker: Broker, connect: Any) -> None:
        for _ in range(3):
            assert (await (await connect()).ask("ApiVersions", 2)).error_code == ErrorCode.NONE
        assert await (await connect()).is_closed()

    serve(scenario)
    assert "a limit is reached" in caplog.text


def test_a_connection_with_many_requests_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One turn at a time is its own, also when flushes release answers to it meanwhile."""

    def slow(broker: Broker, *_: Any) -> Any:
        time.sleep(0.03)
        return list_offsets(broker, *_)

    list_offsets = handler_of(BY_NAME["ListOffsets"])
    monkeypatch.setattr(
        "txnkafka.server.dispatch.handler_of",
        lambda api: slow if api.name == "ListOffsets" else handler_of(api),
    )

    async def scenario(broker: Broker, connect: Any) -> None:
        greedy, other = await with_three_batches(broker, connect), await connect()
        server = next(each for each in gc.get_objects() if isinstance(each, Server) and each.broker is broker)
        soon, scheduled, counts = server.soon, set[object](), list[int]()

        def noting(call: Any) -> None:
            def run() -> None:
                scheduled.discard(run)
                call()

            scheduled.add(run)
            counts.append(len(scheduled))
            soon(run)

        server.soon, count = noting, 30
        data = (PartitionProduceData(index=0, records=bytes(batch_of(b"a"))),)
        topics = (TopicProduceData(name="t", partition_data=data),)
        produce = frame("Produce", 9, acks=-1, timeout_ms=1_000, topic_data=topics)
        greedy.writer.write((produce + frame("ListOffsets", 7)) * count)
        ends: list[str] = []

        async def all_of_greedy() -> None:
            for _ in range(2 * count):
                size = int.from_bytes(await greedy.reader.readexactly(4), "big")
                await greedy.reader.readexactly(size)
            ends.append("greedy")

        async def one_of_other() -> None:
            assert (await other.ask("ApiVersions", 2)).error_code == ErrorCode.NONE
            ends.append("other")

        await asyncio.wait_for(asyncio.gather(all_of_greedy(), one_of_other()), WAIT)
        assert ends == ["other", "greedy"]
        assert max(counts) == 1

    serve(scenario)


def frame(name: str, version: int, **fields: Any) -> bytes:
    """The frame of a request."""
    header, request = RequestHeader(BY_NAME[name], version, 7, "test"), BY_NAME[name].request(**fields)
    return b"".join(map(bytes, write_request(header, request)))


async def with_three_batches(broker: Broker, connect: Any) -> Client:
    """A client of a broker whose topic t has three batches."""
    client: Client = await connect()
    topics = (CreatableTopic(name="t", num_partitions=1, replication_factor=1),)
    await client.ask("CreateTopics", 7, topics=topics)
    append_three(broker)
    await made_durable(client, "u")
    return client


def append_three(broker: Broker) -> None:
    for _ in range(3):
        request = ProduceRequest({TopicPartition("t", 0): batch_of(bytes(100))})
        broker.call(broker.produce, request, lambda _: None, now_ms=broker.now_ms)


async def made_durable(client: Client, topic: str) -> None:
    """The flushes before are finished when this topic is there."""
    topics = (CreatableTopic(name=topic, num_partitions=1, replication_factor=1),)
    await client.ask("CreateTopics", 7, topics=topics)


async def fetched(client: Client, offset: int = 0, max_wait_ms: int = 1) -> int:
    """How many bytes of records the answer to a Fetch has."""
    partitions = (FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20),)
    topics = (FetchTopic(topic="t", partitions=partitions),)
    answer = await client.ask("Fetch", 6, max_wait_ms=max_wait_ms, min_bytes=1, topics=topics)
    return len(answer.responses[0].partitions[0].records)


def test_answers_are_small_while_others_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a Fetch behind a request that waits is kept, and nobody can take it."""

    async def scenario(broker: Broker, connect: Any) -> None:
        client, member = await with_three_batches(broker, connect), await connect()
        whole = await fetched(client)
        monkeypatch.setattr("txnkafka.server.tcp.MAX_UNSENT_BYTES", whole)
        assert await fetched(client) == whole
        await client.ask("FindCoordinator", 0, key="g")
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"m")
        group = {"group_id": "g", "protocol_type": "consumer", "protocols": (protocol,)}
        join = frame("JoinGroup", 3, **group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)
        partitions = (FetchPartition(partition=0, partition_max_bytes=1 << 20),)
        topics = (FetchTopic(topic="t", partitions=partitions),)
        member.writer.write(join + frame("Fetch", 6, min_bytes=1, topics=topics))
        server = next(each for each in gc.get_objects() if isinstance(each, Server) and each.broker is broker)
        while not any(each.unsent_bytes for each in server.connections):
            await asyncio.sleep(0)
        assert await fetched(client) == whole // 3
        member.writer.transport.abort()
        server.stop()  # the group answers
        while len(server.connections) > 1:
            await asyncio.sleep(0)
        assert server.unsent.bytes == 0

    serve(scenario, group_initial_rebalance_delay_ms=60_000)


def test_answers_that_waited_are_small_when_others_have_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        client = await with_three_batches(broker, connect)
        whole = await fetched(client)
        monkeypatch.setattr("txnkafka.server.tcp.MAX_UNSENT_BYTES", whole)
        waiting = [asyncio.create_task(fetched(await connect(), 3, 10_000)) for _ in range(3)]
        while len(broker.fetches) < 3:
            await asyncio.sleep(0)
        append_three(broker)
        await made_durable(client, "v")
        assert sorted(await asyncio.gather(*waiting)) == [whole // 3, whole // 3, whole]

    serve(scenario)


class Turns:
    """Notes how a server asks its host for turns."""

    def __init__(self) -> None:
        self.is_needed, self.calls = True, list[str]()

    def is_quiet(self) -> bool:
        return not self.is_needed

    def wake(self) -> None:
        self.calls.append("soon")

    def turn(self) -> None:
        self.calls.append("now")


class Answered:
    """A connection whose answer a flush has released."""

    def serve(self) -> None:
        """Nothing is sent."""


def test_a_flush_waits_for_other_connections_only_while_they_are_busy() -> None:
    loop, clock = new_event_loop(), SystemClock()
    broker = open_broker(MemoryFiles(), "/data", now_ms=clock.now_ms())
    server = Server(broker, clock, loop)
    server.host.close()
    turns: Any = Turns()
    server.host = turns
    for count, expected in ((0, "now"), (3, "soon"), (0, "soon"), (1, "now")):
        for _ in range(count):
            server.answered(Answered())  # type: ignore[arg-type]
        server._on_turn()
        turns.calls.clear()
        server.served()
        assert turns.calls == [expected]
    turns.is_needed = False
    server.served()
    assert turns.calls == ["now"]
    loop.close()
