"""One connection of the server: an asyncio protocol that moves bytes between a socket and a session.

A connection serves its requests for at most 20 ms before other connections get their turn. It stops reading
while the session takes no requests, and while requests are deferred.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError
from txnkafka.server.error_response import error_response
from txnkafka.server.handlers import SERVED
from txnkafka.server.peer import CloseConnection, Node, Peer
from txnkafka.server.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.server.broker_host import BrokerHost
    from txnkafka.server.dispatch import Dispatcher
    from txnkafka.server.fetch_sessions import FetchSessions
    from txnkafka.server.listeners import Endpoint
    from txnkafka.server.peer import Cancel
    from txnkafka.server.receive_buffer import BlockPool
    from txnkafka.server.session import Request, Unsent

LOG = logging.getLogger("txnkafka.server")
MOST_BUFFERS: Final = os.sysconf("SC_IOV_MAX")  # of one gathered write
CHUNK: Final = 64 << 10  # bytes kept in the transport while the socket is full
LONGEST_SERVED: Final = 0.02  # seconds
MAPPED: Final = "::ffff:"  # prefix of an IPv4 address on an IPv6 socket


class ConnectionOwner(Protocol):
    """The server of a connection. ``unsent`` is shared by all connections."""

    broker: Broker
    host: BrokerHost
    dispatcher: Dispatcher
    pool: BlockPool
    fetch_sessions: FetchSessions
    connections: set[Connection]
    unsent: Unsent
    endpoints: list[Endpoint]
    is_stopping: bool
    time: Callable[[], float]
    soon: Callable[[Callable[[], None]], object]

    def accepts(self, connection: Connection) -> bool:
        """Return whether the server has room for this connection."""
        ...

    def answered(self, connection: Connection) -> None:
        """Note that a connection has something to send, or can read again."""
        ...

    def served(self) -> None:
        """Note that a connection has served requests."""
        ...

    def room(self) -> int:
        """Return how many bytes of records the next response may have."""
        ...


class Connection(asyncio.BufferedProtocol):
    """One connection that arrived at the listener with this number in ``server.endpoints``."""

    def __init__(self, server: ConnectionOwner, listener: int) -> None:
        self._server = server
        self._listener = listener
        config = server.broker.config
        self._session = Session(
            server.pool, config.socket_request_max_bytes, SERVED, server.unsent,
            accepts_unstable=config.unstable_api_versions_enable,
        )  # fmt: skip
        self._transport: asyncio.Transport | None = None
        self._peer = Peer(Node("", 0, server.fetch_sessions))
        self.peer = self.address = "?"
        self._used = server.time()
        self._file_number = -1
        self._is_full = False  # the transport holds bytes that the socket does not take
        self._is_reading = True
        self._is_serving = False
        self._is_behind = False  # received requests are deferred to ``_go_on``, which is scheduled
        self._is_ended = False  # closed by this side
        self._cancel: Cancel | None = None  # of the newest Fetch

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, or abort it when the server has no room."""
        server, self._transport = self._server, cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._file_number = transport.get_extra_info("socket").fileno()
        peer = transport.get_extra_info("peername")
        if peer:
            self.address = peer[0].removeprefix(MAPPED)
            self.peer = f"{self.address}:{peer[1]}"
        here = transport.get_extra_info("sockname")[0].removeprefix(MAPPED)
        endpoints = [endpoint.seen_at(here) for endpoint in server.endpoints]
        _, host, port = endpoints[self._listener]
        node = Node(host, port, server.fetch_sessions, server.room, endpoints)
        self._peer = Peer(node, None, self.address)
        if not server.accepts(self):
            LOG.warning(
                "%s: the connection is refused: a limit is reached (max.connections, max.connections.per.ip, "
                "or the file descriptors that logs need: raise ulimit -n)", self.peer,
            )  # fmt: skip
            self.abort()
            return
        server.connections.add(self)
        if server.is_stopping:
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next bytes."""
        return self._session.space()

    def buffer_updated(self, count: int) -> None:
        """Serve the requests that became complete."""
        self._used = self._server.time()
        self._session.received(count)
        self.serve()
        self._server.served()

    def eof_received(self) -> bool:
        """Return whether the transport stays open after the client has ended its side.

        The client may have closed its sending side only, so it still gets the responses that wait for the
        disk, as in Kafka. Without any the transport is closed now."""
        if not self._session.ends_soon:
            return False
        self._close()
        return True

    def pause_writing(self) -> None:
        """Stop sending until ``resume_writing``."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Continue sending: the socket has taken everything."""
        self._is_full = False
        self._server.answered(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Release the memory of the connection, and withdraw its waiting Fetch."""
        self._transport = None
        self._server.connections.discard(self)
        self._session.close()
        if self._cancel is not None:
            self._cancel()
        if self._server.is_stopping:
            self._server.host.wake()

    # Called by the server

    @property
    def is_drained(self) -> bool:
        """Return whether all responses are sent, except the response to a waiting Fetch."""
        return self._session.is_idle and not self._is_full

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that were given but not sent."""
        return self._session.unsent_bytes

    @property
    def idle_seconds(self) -> float:
        """Seconds since bytes were last received or sent.

        A waiting request does not count as activity, as in Kafka. After a Fetch nothing is read until it is
        answered, so that the end of its client would not be noticed."""
        return self._server.time() - self._used

    def stop_reading(self) -> None:
        """Stop reading requests."""
        if self._transport is not None and self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def abort(self) -> None:
        """End the connection at once."""
        self._is_ended = True
        if self._transport is not None:
            self._transport.abort()

    def serve(self) -> None:
        """Serve received requests as far as the session lets them, and send the responses."""
        transport, session = self._transport, self._session
        if transport is None or transport.is_closing():
            return
        if session.unsent_bytes:
            self._send()
        if self._is_behind:
            return  # other connections have their turn now; ``_go_on`` is scheduled
        was_saturated = True
        until = self._server.time() + LONGEST_SERVED
        while not self._server.is_stopping:
            self._is_serving = True
            self._serve_requests(until)
            self._is_serving = False
            was_saturated = session.is_saturated
            if session.unsent_bytes:
                self._send()  # which may make room for received requests
            if self._is_behind or not was_saturated or session.is_saturated:
                break
        if session.is_over:
            transport.close()
        elif was_saturated or self._is_behind or not self._is_reading:
            self._let_read()

    def _go_on(self) -> None:
        self._is_behind = False
        self.serve()
        self._server.served()

    def _serve_requests(self, until: float) -> None:
        next_request, time = self._session.next_request, self._server.time
        try:
            while not self._is_ended and (request := next_request()) is not None:
                self._dispatch(request)
                if time() > until:
                    self._is_behind = True
                    self._server.soon(self._go_on)
                    return
        except InvalidRequestError as error:
            LOG.warning("%s: the connection is closed: %s", self.peer, error)
            self._close()
        except Exception:
            LOG.exception("%s: the connection is closed: a request could not be processed", self.peer)
            self._close()

    def _dispatch(self, request: Request) -> None:
        header = request.header
        if header.client_id != self._peer.client_id:
            self._peer = self._peer._replace(client_id=header.client_id)
        try:
            cancel = self._server.dispatcher.call(
                header.api, header.api_version, request.message, self._peer,
                partial(self._reply, request), on_error=partial(self._fail, request),
            )  # fmt: skip
        except Exception as error:
            LOG.exception("%s: %s failed", self.peer, header)
            self._fail(request, error)
            return
        if cancel is not None:
            self._cancel = cancel

    def _fail(self, request: Request, error: Exception) -> None:
        """Respond that a request failed in the broker, unless it has a response."""
        if not request.is_answered and self._transport is not None:
            header = request.header
            request.keep_frame()  # some of its batches may wait for the coordinator, and be appended later
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            try:
                response = error_response(header.api, header.api_version, request.message, code)
            except Exception:
                LOG.exception("%s: the connection is closed: no response to %s", self.peer, header)
                self._close(request)
            else:
                self._reply(request, response)

    def _reply(self, request: Request, response: Any) -> None:
        if self._transport is None:
            return
        if request.is_answered:
            LOG.error("%s: %s was answered twice; the second response is dropped", self.peer, request.header)
            return
        if isinstance(response, CloseConnection):
            LOG.warning("%s: the connection is closed: %s", self.peer, response.reason)
            self._close(request)
            return
        try:
            self._session.respond(request, response)
        except Exception:
            LOG.exception("%s: the connection is closed: no response to %s", self.peer, request.header)
            self._close(request)
        else:
            if not self._is_serving:
                self._server.answered(self)

    def _close(self, request: Request | None = None) -> None:
        """Close the connection after all responses before ``request`` are sent; None closes it after all
        received requests."""
        self._is_ended = True
        self._session.end(request)
        self.stop_reading()
        if not self._is_serving:
            self._server.answered(self)

    def _send(self) -> None:
        transport, session = self._transport, self._session
        # a closing transport may have closed its descriptor, whose number another connection may have by now
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
            if count:
                self._used = self._server.time()
            if count < size:
                chunk = session.next_buffers(1)[0][:CHUNK]
                session.sent(len(chunk))
                transport.write(chunk)

    def _let_read(self) -> None:
        """Read while the session takes requests; pause otherwise."""
        is_full = self._is_behind or self._session.is_saturated
        wanted = not (is_full or self._is_ended or self._server.is_stopping)
        if wanted != self._is_reading and self._transport is not None and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
