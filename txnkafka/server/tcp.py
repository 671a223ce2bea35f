"""The TCP server: listeners, connections, signals, and the event loop that runs a broker."""

from __future__ import annotations

import asyncio
import logging
import selectors
import signal
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from txnkafka.env.bound_sockets import bound_sockets
from txnkafka.server.broker_host import BrokerHost
from txnkafka.server.connection import Connection as Connection
from txnkafka.server.descriptors import most_connections
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.receive_buffer import BlockPool
from txnkafka.server.session import Unsent

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from threading import RLock

    from txnkafka.broker.broker import Broker
    from txnkafka.env import Clock
    from txnkafka.server.listeners import Endpoint, Listener

LOG = logging.getLogger("txnkafka.server")
LISTEN_BACKLOG: Final = 128  # asyncio accepts as many at once, before any can be refused
MAX_UNSENT_BYTES: Final = 256 << 20  # of responses to all clients; above it, responses to Fetch are small
STOP_SECONDS: Final = 5.0  # time for clients to take their responses during a stop

Address = tuple[str, int]
"""Host and port."""


def serve(
    broker: Broker,
    clock: Clock,
    listeners: Sequence[Listener],
    on_listening: Callable[[list[list[Address]]], None],
    *,
    on_start: Callable[[Server], None] | None = None,
    on_end: Callable[[], None],
) -> None:
    """Serve the broker on its listeners until SIGTERM, SIGINT or SIGHUP.

    ``on_start`` is called with the server before it listens, ``on_listening`` with the addresses of each
    listener once clients can connect, ``on_end`` once the broker is idle, to close it; further signals do not
    end the process during ``on_end``. Raises OSError when the server cannot listen at an address, and the
    exception of a failed broker, which must not be used after that."""
    loop = new_event_loop()

    def listening(addresses: list[list[Address]]) -> None:
        server.stop_on_signals()
        on_listening(addresses)

    try:
        server = Server(broker, clock, loop)
        if on_start is not None:
            on_start(server)
        loop.run_until_complete(server.run(listeners, listening))
        on_end()
    finally:
        loop.close()  # from here on a signal ends the process


class _SharedSelector(selectors.DefaultSelector):
    """A selector that releases a lock while it waits."""

    def __init__(self, lock: RLock) -> None:
        super().__init__()
        self._lock = lock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._lock.release()
        try:
            return super().select(timeout)
        finally:
            self._lock.acquire()


def new_event_loop(lock: RLock | None = None) -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop if it is installed, else of asyncio. With a ``lock``, which the thread of the
    loop holds, a loop of asyncio that releases it while it waits: other threads may call the broker then."""
    if lock is not None:
        return asyncio.SelectorEventLoop(_SharedSelector(lock))
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return cast(asyncio.AbstractEventLoop, uvloop.new_event_loop())


def _bound(listeners: Sequence[Listener]) -> list[list[socket.socket]]:
    """Return the bound sockets of each listener. Raises OSError.

    For a host name asyncio would bind all its addresses, in no order, and take another port 0 for each."""
    bound: list[list[socket.socket]] = []
    try:
        for listener in listeners:
            bound.append(bound_sockets(listener.listen.host, listener.listen.port))
    except OSError:
        for made in bound:
            for one in made:
                one.close()
        raise
    return bound


def _addresses(sockets: list[socket.socket]) -> list[Address]:
    return [each.getsockname()[:2] for each in sockets]


class Server:
    """A broker with its listeners and connections, for one loop. ``endpoints`` has the advertised address
    of each listener."""

    def __init__(self, broker: Broker, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.pool = BlockPool()
        self.fetch_sessions = FetchSessions(broker.config.max_incremental_fetch_session_cache_slots)
        self.connections: set[Connection] = set()
        self.unsent = Unsent()
        self._most_connections = most_connections()
        self.endpoints: list[Endpoint] = []
        self.is_listening = False
        self.is_stopping = False
        self.time: Callable[[], float] = loop.time
        self._stopped_at = 0.0
        self.soon: Callable[[Callable[[], None]], object] = loop.call_soon
        self._loop = loop
        self._answered: dict[Connection, None] = {}
        self._is_shared = False  # the last responses that waited for a flush belonged to several connections
        self._stopped: asyncio.Future[None] = loop.create_future()
        self._drained: asyncio.Future[None] = loop.create_future()
        self.host = BrokerHost(broker, loop, clock, on_turn=self._on_turn, on_failure=self._on_failure)
        self.dispatcher = Dispatcher(broker, self.host.now_ms)

    async def run(
        self, listeners: Sequence[Listener], on_listening: Callable[[list[list[Address]]], None]
    ) -> None:
        """Listen, and serve until ``stop``. Raises OSError when an address cannot be listened on, and the
        exception of a broker that failed."""
        listening: list[asyncio.Server] = []
        try:
            bound = _bound(listeners)
            listening += await self._listen(listeners, bound)
            self.host.wake()
            self._close_idle()
            self.is_listening = True
            on_listening([_addresses(sockets) for sockets in bound])
            await self._stopped
            await self._stop_listening(listening)
            await self._drain()
        finally:
            await self._stop_listening(listening)
            for connection in list(self.connections):
                connection.abort()
            self.host.close()

    def stop_on_signals(self) -> None:
        """Stop on SIGTERM, SIGINT and SIGHUP; for a loop in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup leaves it
            self._loop.add_signal_handler(signal.SIGHUP, self.stop)

    async def _listen(
        self, listeners: Sequence[Listener], bound: list[list[socket.socket]]
    ) -> list[asyncio.Server]:
        self.endpoints = [
            each.bound(*_addresses(sockets)[0]) for each, sockets in zip(listeners, bound, strict=True)
        ]
        return [
            await self._loop.create_server(
                partial(Connection, self, number), sock=each, backlog=LISTEN_BACKLOG
            )
            for number, sockets in enumerate(bound)
            for each in sockets
        ]

    async def _stop_listening(self, listening: list[asyncio.Server]) -> None:
        """Close the listeners, after asyncio has attached the connections that it has accepted to them.

        To a closed listener it cannot attach them: it drops them without an error, and leaves their sockets
        open."""
        for each in listening:
            for one in each.sockets:
                self._loop.remove_reader(one)  # accept no more
        await asyncio.sleep(0)
        for each in listening:
            each.close()
        await asyncio.sleep(0)  # calls connection_made

    def stop(self) -> None:
        """Stop accepting and reading; end once all acknowledged requests have their responses."""
        if not self._stopped.done():
            self.is_stopping = True
            self._stopped_at = self.time()
            self.broker.groups.stop()
            self._stopped.set_result(None)

    @property
    def stopping_seconds(self) -> float:
        """Seconds since ``stop`` was called."""
        return self.time() - self._stopped_at

    def accepts(self, connection: Connection) -> bool:
        """Return whether one more connection is allowed, in total and from its address."""
        config, address = self.broker.config, connection.address
        if len(self.connections) >= min(config.max_connections, self._most_connections):
            return False
        if len(self.connections) < config.max_connections_per_ip:
            return True
        return sum(each.address == address for each in self.connections) < config.max_connections_per_ip

    def room(self) -> int:
        """Return how many bytes of records the next response may have."""
        return max(1, MAX_UNSENT_BYTES - self.unsent.bytes)

    def _close_idle(self) -> None:
        """Close connections that were idle for ``connections.max.idle.ms``."""
        idle = self.broker.config.connections_max_idle_ms / 1000
        if idle < 0 or self.is_stopping:
            return
        for connection in [each for each in self.connections if each.idle_seconds >= idle]:
            LOG.info("%s: the connection is closed: it was idle", connection.peer)
            connection.abort()
        self._loop.call_later(min(max(idle / 10, 0.01), 10), self._close_idle)

    async def _drain(self) -> None:
        """Wait for the broker without a limit, and for the clients ``STOP_SECONDS``."""
        for connection in self.connections:
            connection.stop_reading()
        timer = self._loop.call_later(STOP_SECONDS, self._give_up_clients)
        self.host.wake()
        await self._drained
        timer.cancel()

    def _give_up_clients(self) -> None:
        for connection in list(self.connections):
            connection.abort()
        self.host.wake()

    def answered(self, connection: Connection) -> None:
        """Serve this connection in the next turn: it has something to send, or can read again."""
        self._answered[connection] = None
        self.host.wake()

    def served(self) -> None:
        """Take a turn after served requests, if the broker has anything to do.

        The turn comes soon while several connections are busy, so that their requests share a flush;
        otherwise at once."""
        if self.is_stopping or not self.host.is_quiet():
            take_turn = self.host.wake if self._is_shared else self.host.turn
            take_turn()

    def _on_turn(self) -> None:
        while self._answered:
            answered, self._answered = self._answered, {}
            self._is_shared = len(answered) > 1
            for connection in answered:  # in the order of their responses
                connection.serve()
        if self.is_stopping and not self._drained.done() and self._is_drained():
            self.host.stop()  # closing the broker does a flush that no client waits for
            self._drained.set_result(None)

    def _is_drained(self) -> bool:
        return self.broker.is_idle and all(connection.is_drained for connection in self.connections)

    def _on_failure(self, error: BaseException) -> None:
        for waiting in (self._stopped, self._drained):
            if not waiting.done():
                waiting.set_exception(error)
