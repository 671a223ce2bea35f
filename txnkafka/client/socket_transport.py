"""Connections to brokers over TCP, unencrypted and unauthenticated.

A connection is a channel of the ``SocketReactor``. Its first request is ApiVersions (KIP-35, KIP-511).
"""

from __future__ import annotations

import socket
from collections import deque
from errno import EINPROGRESS, EWOULDBLOCK
from functools import partial
from os import strerror
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.client.framing import FrameReader
from txnkafka.client.promise import Promise
from txnkafka.client.transport import API_OF, Connection, Node, Versions
from txnkafka.client.versions import api_versions_request, versions_of
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError, KafkaError, NetworkError
from txnkafka.wire.messages.apis import API_VERSIONS
from txnkafka.wire.messages.frames import RequestHeader, read_response, write_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.client.socket_reactor import SocketReactor
    from txnkafka.model import TopicPartition
    from txnkafka.wire.messages.apis import Api

_MOST_BUFFERS: Final = 64  # of one gathered write
_CORRELATION_IDS: Final = 1 << 31
_UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2)


class _Pending(NamedTuple):
    """A request without its response."""

    api: Api
    version: int
    promise: Promise[Any]
    until_ms: int


class SocketTransport:
    """Opens connections. ``client_id`` is in every request's header; ``closed`` is called with a connection
    that has ended."""

    def __init__(self, reactor: SocketReactor, bootstrap: list[Node], client_id: str) -> None:
        self.reactor = reactor
        self.bootstrap = bootstrap
        self.client_id = client_id
        self._connections: set[SocketConnection] = set()

    def connect(self, node: Node, timeout_ms: int) -> Promise[Connection]:
        """Connect to a broker, and ask for its versions."""
        return self.reactor.spawn(self._connect(node, timeout_ms))

    async def visible(self, partitions: Iterable[TopicPartition] | None) -> None:
        """Return at once."""

    def close(self) -> None:
        """Close all connections and the reactor."""
        with self.reactor.lock:
            for connection in list(self._connections):
                connection.close("the client was closed")
        self.reactor.close()

    async def _connect(self, node: Node, timeout_ms: int) -> Connection:
        reactor = self.reactor
        until = reactor.now_ms() + timeout_ms
        found = await reactor.first(reactor.in_thread(partial(_addresses, node)), timeout_ms)
        if not found.is_done:
            raise NetworkError(f"{node.host}: the address was not found within {timeout_ms} ms")
        reason = "the name has no address"
        for address in found.result():
            connection = SocketConnection(reactor, node, self.client_id, self._connections)
            opened = connection.open(*address)
            await reactor.first(opened, until - reactor.now_ms())
            try:
                if not opened.is_done:
                    raise NetworkError(f"{node}: no connection within {timeout_ms} ms")
                opened.result()
                connection.versions = await self._versions(connection, max(1, until - reactor.now_ms()))
            except KafkaError as error:
                connection.close(str(error))
                reason = str(error)
            else:
                return connection
        raise NetworkError(reason)

    async def _versions(self, connection: SocketConnection, timeout_ms: int) -> Versions:
        """Ask for the versions of a broker. An older one answers an unknown version of the request in version
        0, with the versions that it knows (KIP-511)."""
        version = API_OF["ApiVersions"].announced[1]
        until = connection.reactor.now_ms() + timeout_ms
        while True:
            left = max(1, until - connection.reactor.now_ms())
            response = await connection.request("ApiVersions", version, api_versions_request(), left)
            if response.error_code != ErrorCode.UNSUPPORTED_VERSION or version == 0:
                return versions_of(response)
            theirs = [
                row.max_version for row in response.api_keys if row.api_key == API_OF["ApiVersions"].key
            ]
            version = min(version - 1, *theirs) if theirs else 0


def _addresses(node: Node) -> list[tuple[Any, ...]]:
    """Return (family, address) of a node's host. Raises NetworkError."""
    try:
        found = socket.getaddrinfo(node.host, node.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NetworkError(f"{node}: the host is unknown: {error.strerror or error}") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


class SocketConnection:
    """One connection. Its requests are answered in order."""

    def __init__(
        self, reactor: SocketReactor, node: Node, client_id: str, others: set[SocketConnection]
    ) -> None:
        self.node = node
        self.reactor = reactor
        self.versions = Versions({}, {})
        self.is_closed = False
        self._reason = ""  # of the close
        self._client_id = client_id
        self._others = others
        self._socket: socket.socket | None = None
        self._opened: Promise[None] | None = None
        self._frames = FrameReader(str(node))
        self._pending: deque[tuple[int, _Pending]] = deque()
        self._unsent: deque[memoryview] = deque()
        self._without_response: list[Promise[Any]] = []
        self._next_id = 0
        self._writes = False
        self._has_timer = False

    def open(self, family: int, address: Any) -> Promise[None]:
        """Begin to connect."""
        opened = self._opened = Promise[None]()
        try:
            sock = self._socket = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(address)
        except OSError as error:
            code = error.errno or 0
        self._others.add(self)
        if code in (0, EINPROGRESS, EWOULDBLOCK):
            self._writes = True
            self.reactor.watch(sock, self, writes=True)
        else:
            self.close(f"no connection to {self.node}: {strerror(code)}")
        return opened

    def request(self, name: str, version: int, message: Any, timeout_ms: int) -> Promise[Any]:
        """Send a request; see ``transport.Connection``."""
        if self.is_closed:
            return Promise.failed(NetworkError(self._reason))
        api = API_OF[name]
        promise: Promise[Any] = Promise()
        number, self._next_id = self._next_id, (self._next_id + 1) % _CORRELATION_IDS
        for buffer in write_request(RequestHeader(api, version, number, self._client_id), message):
            view = memoryview(buffer)
            self._unsent.append(view if view.format == "B" else view.cast("B"))
        if name == "Produce" and message.acks == 0:
            self._without_response.append(promise)
        else:
            until_ms = self.reactor.now_ms() + timeout_ms
            self._pending.append((number, _Pending(api, version, promise, until_ms)))
            self._set_timer(until_ms)
        if self._opened is None:
            self._send()
        return promise

    def close(self, reason: str) -> None:
        """Close the connection, and fail its requests."""
        if self.is_closed:
            return
        self.is_closed, self._reason = True, reason
        self._others.discard(self)
        if self._socket is not None:
            self.reactor.unwatch(self._socket)
            self._socket.close()
        error = NetworkError(reason)
        if self._opened is not None:
            self._opened.fail(error)
        pending, self._pending = self._pending, deque()
        self._unsent.clear()
        for _, each in pending:
            each.promise.fail(error)
        for promise in self._without_response:
            promise.fail(error)

    def on_ready(self, *, is_readable: bool, is_writable: bool) -> None:
        """Continue to connect, read, or write."""
        if self.is_closed or self._socket is None:
            return
        if self._opened is not None:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.close(f"no connection to {self.node}: {strerror(code)}")
                return
            opened, self._opened = self._opened, None
            opened.set(None)
        if is_readable:
            self._receive(self._socket)
        if not self.is_closed and (is_writable or self._unsent):
            self._send()

    def _receive(self, sock: socket.socket) -> None:
        """Receive until the socket has no more, which it shows by less than there is room for."""
        is_full = True
        while is_full and not self.is_closed:
            space = self._frames.space()
            try:
                count = sock.recv_into(space)
            except BlockingIOError:
                return
            except OSError as error:
                self.close(f"the connection to {self.node} ended: {error.strerror}")
                return
            if not count:
                self.close(f"{self.node} closed the connection")
                return
            is_full = count == len(space)
            try:
                for frame in self._frames.received(count):
                    self._respond(frame)
            except InvalidRequestError as error:
                self.close(f"{self.node} sent a response that cannot be read: {error}")

    def _respond(self, frame: memoryview) -> None:
        if not self._pending:
            raise InvalidRequestError("it belongs to no request")
        number, pending = self._pending[0]
        if len(frame) >= 4 and (found := int.from_bytes(frame[:4], signed=True)) != number:
            raise InvalidRequestError(f"it belongs to request {found}, not {number}")
        version = pending.version
        if pending.api.key == API_VERSIONS and frame[4:6] == _UNSUPPORTED:
            version = 0  # the only version that both sides know for certain (KIP-511)
        _, message = read_response(pending.api, version, frame)
        self._pending.popleft()
        pending.promise.set(message)

    def _send(self) -> None:
        unsent, sock = self._unsent, self._socket
        try:
            while unsent and sock is not None:
                buffers = [unsent[i] for i in range(min(len(unsent), _MOST_BUFFERS))]
                self._sent(sock.sendmsg(buffers))
        except BlockingIOError:
            pass
        except OSError as error:
            self.close(f"the connection to {self.node} ended: {error.strerror}")
            return
        if sock is not None and bool(unsent) != self._writes:
            self._writes = bool(unsent)
            self.reactor.watch(sock, self, writes=self._writes)
        if not unsent and self._without_response:
            sent, self._without_response = self._without_response, []
            for promise in sent:
                promise.set(None)

    def _sent(self, count: int) -> None:
        unsent = self._unsent
        while count or (unsent and not len(unsent[0])):
            size = len(unsent[0])
            if count < size:
                unsent[0] = unsent[0][count:]
                return
            count -= size
            unsent.popleft()

    def _set_timer(self, until_ms: int) -> None:
        if not self._has_timer:
            self._has_timer = True
            self.reactor.call_at(until_ms, self._look)

    def _look(self) -> None:
        """Close the connection if its oldest request has no response in its time, as Kafka's NetworkClient
        does."""
        self._has_timer = False
        if self.is_closed or not self._pending:
            return
        until_ms = min(each.until_ms for _, each in self._pending)
        if until_ms <= self.reactor.now_ms():
            names = ", ".join(sorted({each.api.name for _, each in self._pending}))
            self.close(f"{self.node} did not answer {names} in time")
        else:
            self._set_timer(until_ms)
