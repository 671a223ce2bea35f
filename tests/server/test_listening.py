"""Where a server listens, and what clients are told of it, on both event loops."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import suppress
from typing import Any

import pytest

from tests.server.in_process import WAIT, Client, serve, use_event_loop
from tests.server.serving import EVENT_LOOPS
from txnkafka.broker.broker import Broker, open_broker
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.env import SystemClock
from txnkafka.error_codes import ErrorCode
from txnkafka.server.listeners import listeners_at
from txnkafka.server.tcp import Address, Server, _bound, new_event_loop
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.messages.describe_configs import DescribeConfigsResource


@pytest.fixture(autouse=True, params=EVENT_LOOPS)
def event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_event_loop(request.param, monkeypatch)


def test_the_wildcard_of_ipv6_is_that_of_ipv4_too() -> None:
    async def scenario(broker: Broker, connect: Any) -> None:
        answer = await (await connect()).ask("Metadata", 12, topics=())
        assert [each.host for each in answer.brokers] == ["127.0.0.1"]

    serve(scenario, address="::" if socket.has_dualstack_ipv6() else "0.0.0.0")


def test_a_server_listens_on_all_addresses_of_a_name_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known by the first of them, and has one port."""
    four = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
    six = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))
    not_here = (*six[:4], ("2001:db8::1", 0, 0, 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [not_here, four, six])

    async def scenario(broker: Broker, connect: Any) -> None:
        (at,) = (await (await connect()).ask("Metadata", 12, topics=())).brokers
        assert at.host == "127.0.0.1"
        other = Client(*await asyncio.open_connection("::1", at.port))
        assert (await other.ask("ApiVersions", 2)).error_code == ErrorCode.NONE
        other.writer.close()

    serve(scenario, address="name")


def test_a_client_gets_the_advertised_address_of_its_listener() -> None:
    """From each API that has the address of a broker."""
    settings = {"advertised.listeners": "PLAINTEXT://:0,PLAINTEXT_2://kafka.example.com:19092"}
    listeners = listeners_at([("127.0.0.1", 0), ("localhost", 0)], settings)

    async def scenario(broker: Broker, connect: Any) -> None:
        direct, mapped = await connect(0), await connect(1)
        port = direct.writer.get_extra_info("peername")[1]
        for client, expected in ((direct, ("127.0.0.1", port)), (mapped, ("kafka.example.com", 19092))):
            (at,) = (await client.ask("Metadata", 12, topics=())).brokers
            (node,) = (await client.ask("DescribeCluster", 1)).brokers
            answer = await client.ask("FindCoordinator", 4, key_type=0, coordinator_keys=("g",))
            (coordinator,) = answer.coordinators
            old = await client.ask("FindCoordinator", 2, key_type=1, key="x")
            assert {(each.host, each.port) for each in (at, node, coordinator, old)} == {expected}
        resource = DescribeConfigsResource(resource_type=4, resource_name="1")
        (result,) = (await mapped.ask("DescribeConfigs", 4, resources=(resource,))).results
        (shown,) = (each.value for each in result.configs if each.name == "advertised.listeners")
        assert shown == f"PLAINTEXT://127.0.0.1:{port},PLAINTEXT_2://kafka.example.com:19092"

    serve(scenario, listeners=listeners)


def test_a_second_address_in_use_leaves_nothing_open() -> None:
    """The socket of the first listener is closed with the rest."""
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        listeners = listeners_at([("127.0.0.1", port), ("127.0.0.1", taken.getsockname()[1])], {})
        with pytest.raises(OSError, match="in use"):
            _bound(listeners)
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize("iterations", range(6))
def test_a_client_that_connects_while_the_server_stops_sees_the_end_of_its_connection(
    iterations: int,
) -> None:
    """Whatever asyncio has done with it by then. An open socket in an embedded broker would have it wait for
    a response until its own time limit."""
    loop = new_event_loop()
    clock = SystemClock()
    config = BrokerConfig(transaction_state_log_num_partitions=1)
    broker = open_broker(MemoryFiles(), "/data", config, now_ms=clock.now_ms())
    server = Server(broker, clock, loop)
    client = socket.socket()
    client.settimeout(WAIT)

    def stop_after(left: int) -> None:
        if left:
            loop.call_soon(stop_after, left - 1)
        else:
            server.stop()

    def listening(addresses: list[list[Address]]) -> None:
        client.connect(addresses[0][0])
        stop_after(iterations)

    gc.disable()  # it would close a forgotten socket
    try:
        loop.run_until_complete(server.run(listeners_at([("127.0.0.1", 0)], {}), listening))
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    finally:
        gc.enable()
        client.close()
        loop.close()
        broker.close()
