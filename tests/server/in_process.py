"""A server in this process, and connections to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import pytest

from txnkafka.broker.broker import Broker, open_broker
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.env import SystemClock
from txnkafka.server.listeners import Listener, listeners_at
from txnkafka.server.tcp import Address, Server, new_event_loop
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.messages import APIS, RequestHeader, read_response, write_request

__all__ = ["BY_NAME", "WAIT", "Client", "serve", "use_event_loop"]

BY_NAME = {api.name: api for api in APIS.values()}
WAIT = 10.0


def use_event_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have servers run on the loop of this library."""
    if name == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_event_loop()
    assert type(loop).__module__.startswith(name)
    loop.close()


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, name: str, version: int, **fields: Any) -> Any:
        api = BY_NAME[name]
        header = RequestHeader(api, version, 7, "test")
        self.writer.writelines(write_request(header, api.request(**fields)))
        size = int.from_bytes(await asyncio.wait_for(self.reader.readexactly(4), WAIT), "big")
        _, response = read_response(api, version, await self.reader.readexactly(size))
        return response

    async def is_closed(self) -> bool:
        """Waits for the end."""
        try:
            return await asyncio.wait_for(self.reader.read(1), WAIT) == b""
        except ConnectionResetError:
            return True


Scenario = Callable[[Broker, Callable[..., Coroutine[Any, Any, Client]]], Coroutine[Any, Any, None]]


def serve(
    scenario: Scenario,
    *,
    address: str = "127.0.0.1",
    listeners: Sequence[Listener] = (),
    **configs: Any,
) -> None:
    """Run a scenario against a server, which must end well. ``connect`` takes the number of a listener."""
    clock = SystemClock()
    config = BrokerConfig(transaction_state_log_num_partitions=1, **configs)
    broker = open_broker(MemoryFiles(), "/data", config, now_ms=clock.now_ms())

    async def run() -> None:
        server = Server(broker, clock, asyncio.get_running_loop())
        listening: asyncio.Future[list[list[Address]]] = asyncio.get_running_loop().create_future()
        wanted = listeners or listeners_at([(address, 0)], {})
        serving = asyncio.create_task(server.run(wanted, listening.set_result))
        addresses = await asyncio.wait_for(listening, WAIT)

        clients: list[Client] = []

        async def connect(listener: int = 0) -> Client:
            _, port = addresses[listener][0]
            clients.append(Client(*await asyncio.open_connection("127.0.0.1", port)))
            return clients[-1]

        try:
            await scenario(broker, connect)
        finally:
            for client in clients:
                client.writer.close()
                with suppress(ConnectionError):
                    await client.writer.wait_closed()
            server.stop()
            await asyncio.wait_for(serving, WAIT)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())
    broker.close()
