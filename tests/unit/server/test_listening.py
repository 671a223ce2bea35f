"""Where a server listens, and what clients are told of it, on both event loops."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from tests.unit.server.in_process import Client, serve, use_event_loop
from tests.unit.server.serving import EVENT_LOOPS
from txnkafka.broker.broker import Broker
from txnkafka.error_codes import ErrorCode


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
