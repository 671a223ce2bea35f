"""One connection of the server: an asyncio protocol that moves bytes between its socket and its session.

Requests are served as they come, for 20 ms; then other connections have their turn. Nothing is read while the
session takes no requests, or while some are left for later.
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

__all__ = ["Connection", "ConnectionOwner"]

LOG = logging.getLogger("txnkafka.server")
MOST_BUFFERS: Final = os.sysconf("SC_IOV_MAX")  # of one gathered write
CHUNK: Final = 64 << 10  # what waits in the transport while the socket takes nothing
LONGEST_SERVED: Final = 0.02  # seconds
MAPPED: Final = "::ffff:"  # an IPv4 address on a socket of IPv6


class ConnectionOwner(Protocol):
    """The server of a connection. ``unsent`` counts for all of them."""

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
        """Whether there is room for one more."""
        ...

    def answered(self, connection: Connection) -> None:
        """A connection has something to send, or can go on reading."""
        ...

    def served(self) -> None:
        """Requests came and were served."""
        ...

    def room(self) -> int:
        """How many bytes of records the next answer may have."""
        ...


class Connection(asyncio.BufferedProtocol):
    """One connection, by the listener with this number in ``server.endpoints``."""

    def __init__(self, server: ConnectionOwner, listener: int) -> None:
        self._server = server
        self._listener = listener
        most = server.broker.config.socket_request_max_bytes
        self._session = Session(server.pool, most, SERVED, server.unsent)
        self._transport: asyncio.Transport | None = None
        self._peer = Peer(Node("", 0, server.fetch_sessions))
        self.peer = self.address = "?"
        self._used = server.time()
        self._file_number = -1
        self._is_full = False  # the transport has bytes that the socket does not take
        self._is_reading = True
        self._is_serving = False
        self._is_behind = False  # requests that have come are left for ``_go_on``, which is scheduled
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
            self.address = peer[0].removeprefix(MAPPED)
            self.peer = f"{self.address}:{peer[1]}"
        here = transport.get_extra_info("sockname")[0].removeprefix(MAPPED)
        endpoints = [each.seen_at(here) for each in server.endpoints]
        _, host, port = endpoints[self._listener]
        node = Node(host, port, server.fetch_sessions, server.room, endpoints)
        self._peer = Peer(node, None, self.address)
        if not server.accepts(self):
            LOG.warning(
                "%s: the connection is closed: there are too many (max.connections, max.connections.per.ip, "
                "or the file descriptors that logs need: raise ulimit -n)", self.peer,
            )  # fmt: skip
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
        """The client sends no more. It gets the answers that wait for the disk, as in Kafka: it may have
        closed its side only. The transport is closed now unless there are any."""
        if not self._session.ends_soon:
            return False
        self._close()
        return True

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
    def unsent_bytes(self) -> int:
        """Of answers that were given."""
        return self._session.unsent_bytes

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
        if self._is_behind:
            return  # others have their turn now, and ``_go_on`` comes
        was_saturated = True
        until = self._server.time() + LONGEST_SERVED
        while not self._server.is_stopping:
            self._is_serving = True
            self._serve_requests(until)
            self._is_serving = False
            was_saturated = session.is_saturated
            if session.unsent_bytes:
                self._send()  # which may make room for the requests that have come
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
            LOG.exception("%s: the connection is closed: a request failed", self.peer)
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
        """Answer that a request failed, unless it is answered: the broker raised an exception."""
        if not request.is_answered and self._transport is not None:
            header = request.header
            request.keep_frame()  # some of its batches may wait for the coordinator, and be appended later
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            try:
                response = error_response(header.api, header.api_version, request.message, code)
            except Exception:
                LOG.exception("%s: the connection is closed: no answer to %s", self.peer, header)
                self._close(request)
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
            self._close(request)
            return
        try:
            self._session.respond(request, response)
        except Exception:
            LOG.exception("%s: the connection is closed: no answer to %s", self.peer, request.header)
            self._close(request)
        else:
            if not self._is_serving:
                self._server.answered(self)

    def _close(self, request: Request | None = None) -> None:
        """End the connection with a request, or with what came behind all of them: when those before are
        answered, and their answers sent."""
        self._is_ended = True
        self._session.end(request)
        self.stop_reading()
        if not self._is_serving:
            self._server.answered(self)

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
            if count:
                self._used = self._server.time()
            if count < size:
                chunk = session.next_buffers(1)[0][:CHUNK]
                session.sent(len(chunk))
                transport.write(chunk)

    def _let_read(self) -> None:
        """Read as long as the session takes requests."""
        is_full = self._is_behind or self._session.is_saturated
        wanted = not (is_full or self._is_ended or self._server.is_stopping)
        if wanted != self._is_reading and self._transport is not None and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
