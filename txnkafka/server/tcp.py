"""The sockets of the broker: connections, the listener, signals. The one module that speaks asyncio."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError
from txnkafka.server.broker_host import BrokerHost
from txnkafka.server.context import CloseConnection, Context, Node
from txnkafka.server.error_response import error_response
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.handlers import SERVED, handler_of
from txnkafka.server.receive_buffer import BlockPool
from txnkafka.server.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.env import Clock
    from txnkafka.server.context import Cancel
    from txnkafka.server.session import Request

__all__ = ["Connection", "Server", "serve"]

LOG = logging.getLogger("txnkafka.server")
MOST_BUFFERS: Final = os.sysconf("SC_IOV_MAX")  # of one gathered write
CHUNK: Final = 64 << 10  # what waits in the transport while the socket takes nothing
LISTEN_BACKLOG: Final = 1024
STOP_SECONDS: Final = 5.0  # how long a stop waits for clients to take their answers
_WILDCARDS: Final = ("0.0.0.0", "::")


def serve(
    broker: Broker,
    clock: Clock,
    host: str,
    port: int,
    on_listening: Callable[[str, int], None],
    *,
    on_start: Callable[[Server], None] | None = None,
) -> None:
    """Serve the broker on an address until SIGTERM or SIGINT; it is idle then, and the caller closes it.
    ``on_start`` is called with the server before, ``on_listening`` with the address when clients can connect.
    Raises OSError when it cannot be listened on, and what the broker raises, which is not to be used any more
    then."""
    loop = _new_event_loop()
    try:
        server = Server(broker, clock, loop)
        if on_start is not None:
            on_start(server)
        loop.run_until_complete(server.run(host, port, on_listening))
    finally:
        loop.close()


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return cast(asyncio.AbstractEventLoop, uvloop.new_event_loop())


class Server:
    """A broker with its listener and connections; for one loop."""

    def __init__(self, broker: Broker, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.pool = BlockPool()
        self.fetch_sessions = FetchSessions(broker.config.max_incremental_fetch_session_cache_slots)
        self.connections: set[Connection] = set()
        self.address = ("", 0)
        self.is_stopping = False
        self.time = loop.time
        self.handler_of = handler_of  # metrics put one that counts in its place
        self._loop = loop
        self._answered: dict[Connection, None] = {}
        self._is_shared = False  # the last answers that waited for a flush were those of several connections
        self._stopped: asyncio.Future[None] = loop.create_future()
        self._drained: asyncio.Future[None] = loop.create_future()
        self.host = BrokerHost(broker, loop, clock, on_turn=self._on_turn, on_failure=self._on_failure)

    async def run(self, host: str, port: int, on_listening: Callable[[str, int], None]) -> None:
        """Listen, and serve until ``stop``."""
        listener = await self._loop.create_server(
            lambda: Connection(self), host, port, backlog=LISTEN_BACKLOG
        )
        self.address = listener.sockets[0].getsockname()[:2]
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop)
        self.host.wake()
        self._close_idle()
        on_listening(*self.address)
        try:
            await self._stopped
            listener.close()
            await self._drain()
        finally:
            for connection in list(self.connections):
                connection.abort()
            self.host.close()

    def stop(self) -> None:
        """Accept and read nothing more; end when what was acknowledged is sent."""
        if not self._stopped.done():
            self.is_stopping = True
            self.broker.groups.stop()
            self._stopped.set_result(None)

    def accepts(self, connection: Connection) -> bool:
        """Whether there is room for one more connection, and for one more of its address."""
        config, address = self.broker.config, connection.address
        if len(self.connections) >= config.max_connections:
            return False
        if len(self.connections) < config.max_connections_per_ip:
            return True
        return sum(each.address == address for each in self.connections) < config.max_connections_per_ip

    def _close_idle(self) -> None:
        """Close the connections on which nothing has happened for ``connections.max.idle.ms``."""
        idle = self.broker.config.connections_max_idle_ms / 1000
        if idle < 0 or self.is_stopping:
            return
        for connection in [each for each in self.connections if each.idle_seconds >= idle]:
            LOG.info("%s: the connection is closed: it was idle", connection.peer)
            connection.abort()
        self._loop.call_later(min(max(idle / 10, 0.01), 10), self._close_idle)

    async def _drain(self) -> None:
        """Wait for the broker, without a limit, and for the clients, for some seconds."""
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
        """A connection has something to send, or can go on reading."""
        self._answered[connection] = None
        self.host.wake()

    def served(self) -> None:
        """Requests came and were served. A turn follows if it has anything to do: soon, so that those of
        other connections that are ready share its flush, or at once while others are not as busy."""
        if self.is_stopping or not self.host.is_quiet():
            take_turn = self.host.wake if self._is_shared else self.host.turn
            take_turn()

    def _on_turn(self) -> None:
        while self._answered:
            answered, self._answered = self._answered, {}
            self._is_shared = len(answered) > 1
            for connection in answered:  # in the order of their answers
                connection.serve()
        if self.is_stopping and not self._drained.done() and self._is_drained():
            self.host.stop()  # the close does a flush that no client waits for
            self._drained.set_result(None)

    def _is_drained(self) -> bool:
        return self.broker.is_idle and all(connection.is_drained for connection in self.connections)

    def _on_failure(self, error: BaseException) -> None:
        for waiting in (self._stopped, self._drained):
            if not waiting.done():
                waiting.set_exception(error)


class Connection(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._session = Session(server.pool, server.broker.config.socket_request_max_bytes, SERVED)
        self._transport: asyncio.Transport | None = None
        self._node = Node("", 0, server.fetch_sessions)
        self.peer = self.address = "?"
        self._used = server.time()
        self._file_number = -1
        self._is_full = False  # the transport has bytes that the socket does not take
        self._is_reading = True
        self._is_serving = False
        self._is_ended = False  # by this side
        self._cancel: Cancel | None = None  # of the last Fetch

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        server, self._transport = self._server, cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._file_number = transport.get_extra_info("socket").fileno()
        peer = transport.get_extra_info("peername")
        if peer:
            self.address, self.peer = peer[0], f"{peer[0]}:{peer[1]}"
        host, port = server.address
        if host in _WILDCARDS:  # no address to connect to: announce the one that this client has used
            host = transport.get_extra_info("sockname")[0]
        self._node = Node(host, port, server.fetch_sessions)
        if not server.accepts(self):
            LOG.warning("%s: the connection is closed: there are too many", self.peer)
            self.abort()
            return
        server.connections.add(self)
        if server.is_stopping:
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._session.space()

    def buffer_updated(self, count: int) -> None:
        """Bytes came."""
        self._used = self._server.time()
        self._session.received(count)
        self.serve()
        self._server.served()

    def eof_received(self) -> bool:
        """The client has closed; so does the transport."""
        return False

    def pause_writing(self) -> None:
        """The socket takes nothing."""
        self._is_full = True

    def resume_writing(self) -> None:
        """The socket has taken everything."""
        self._is_full = False
        self._server.answered(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self._transport = None
        self._server.connections.discard(self)
        self._session.close()
        if self._cancel is not None:
            self._cancel()
        if self._server.is_stopping:
            self._server.host.wake()

    # For the server

    @property
    def is_drained(self) -> bool:
        """Whether nothing of what was asked for is left to be sent, but for a Fetch that waits."""
        return self._session.is_idle and not self._is_full

    @property
    def idle_seconds(self) -> float:
        """For how long nothing has come and nothing was sent. A request that waits does not count, as in
        Kafka: behind a Fetch nothing is read, so that the end of its client is not seen."""
        return self._server.time() - self._used

    def stop_reading(self) -> None:
        """Take no more requests."""
        if self._transport is not None and self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def abort(self) -> None:
        """End the connection at once."""
        self._is_ended = True
        if self._transport is not None:
            self._transport.abort()

    def serve(self) -> None:
        """Serve the requests that have come as far as the session lets them, and send the answers."""
        transport, session = self._transport, self._session
        if transport is None or transport.is_closing():
            return
        if session.unsent_bytes:
            self._send()
        was_saturated = True
        while not self._server.is_stopping:
            self._is_serving = True
            self._serve_requests()
            self._is_serving = False
            was_saturated = session.is_saturated
            if session.unsent_bytes:
                self._send()  # which may make room for the requests that have come
            if not was_saturated or session.is_saturated:
                break
        if was_saturated or not self._is_reading:
            self._let_read()

    def _serve_requests(self) -> None:
        next_request = self._session.next_request
        try:
            while not self._is_ended and (request := next_request()) is not None:
                self._dispatch(request)
        except InvalidRequestError as error:
            LOG.warning("%s: the connection is closed: %s", self.peer, error)
            self._close()
        except Exception:
            LOG.exception("%s: the connection is closed: a request failed", self.peer)
            self._close()

    def _dispatch(self, request: Request) -> None:
        header, server = request.header, self._server
        context = Context(self._node, server.host.now_ms(), header.client_id, self.address)
        handle = server.handler_of(header.api)
        failures = server.broker.failures
        failures.owner = partial(self._fail, request)
        try:
            cancel = handle(
                server.broker, request.message, header.api_version, context, partial(self._reply, request)
            )
        except Exception as error:
            LOG.exception("%s: %s failed", self.peer, header)
            self._fail(request, error)
            return
        finally:
            failures.owner = None
        if cancel is not None:
            self._cancel = cancel

    def _fail(self, request: Request, error: Exception) -> None:
        """Answer that a request failed, unless it is answered: the broker raised an exception."""
        if not request.is_answered and self._transport is not None:
            header = request.header
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            try:
                response = error_response(header.api, header.api_version, request.message, code)
            except Exception:
                LOG.exception("%s: the connection is closed: no answer to %s", self.peer, header)
                self._close()
            else:
                self._reply(request, response)

    def _reply(self, request: Request, response: Any) -> None:
        if self._transport is None:
            return
        if request.is_answered:
            LOG.error("%s: %s was answered before", self.peer, request.header)
            return
        if isinstance(response, CloseConnection):
            LOG.warning("%s: the connection is closed: %s", self.peer, response.reason)
            self._close()
            return
        try:
            self._session.respond(request, response)
        except Exception:
            LOG.exception("%s: the connection is closed: no answer to %s", self.peer, request.header)
            self._close()
        else:
            if not self._is_serving:
                self._server.answered(self)

    def _close(self) -> None:
        """End the connection when the answers before are sent as far as the socket takes them."""
        self._is_ended = True
        if self._transport is not None:
            self._send()
            self._transport.close()

    def _send(self) -> None:
        transport, session = self._transport, self._session
        # a transport that is closing may have closed its descriptor: its number may be another connection's
        while transport is not None and not self._is_full and not transport.is_closing():
            buffers = session.next_buffers(MOST_BUFFERS)
            if not buffers:
                return
            size = sum(map(len, buffers))
            try:
                count = os.writev(self._file_number, buffers)
            except BlockingIOError:
                count = 0
            except OSError as error:
                LOG.debug("%s: %s", self.peer, error)
                self.abort()
                return
            session.sent(count)
            self._used = self._server.time()
            if count < size:
                chunk = session.next_buffers(1)[0][:CHUNK]
                session.sent(len(chunk))
                transport.write(chunk)

    def _let_read(self) -> None:
        """Read as long as the session takes requests."""
        wanted = not self._session.is_saturated and not self._server.is_stopping
        if wanted != self._is_reading and self._transport is not None and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
