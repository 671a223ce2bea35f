"""``InProcessTransport``: requests of clients to the broker of this process, without bytes and sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.promise import Promise
from txnkafka.client.transport import API_OF, Connection, Node, Versions
from txnkafka.client.versions import api_versions_request, versions_of
from txnkafka.errors import ClosedError, NetworkError
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.peer import CloseConnection, Peer
from txnkafka.server.peer import Node as ServerNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.embedded.engine_reactor import EngineReactor
    from txnkafka.model import TopicPartition

_HOST: Final = "in-process"


class InProcessTransport:
    """The one connection of a client to the broker of ``reactor``."""

    def __init__(self, reactor: EngineReactor, client_id: str) -> None:
        self.reactor = reactor
        engine = reactor.engine
        self.bootstrap = [Node(engine.node_id, _HOST, 0)]
        sessions = FetchSessions(engine.config.max_incremental_fetch_session_cache_slots)
        peer = Peer(ServerNode(_HOST, 0, sessions), client_id, _HOST)
        self._connection = InProcessConnection(
            self.bootstrap[0], Dispatcher(engine, reactor.wall_ms), peer, reactor
        )

    def connect(self, node: Node, timeout_ms: int) -> Promise[Connection]:
        """Return the connection. The features of the broker may have changed since the last call."""
        return self.reactor.spawn(self._connect())

    async def _connect(self) -> Connection:
        connection = self._connection
        version = API_OF["ApiVersions"].announced[1]
        response = await connection.request("ApiVersions", version, api_versions_request(), 0)
        connection.versions = versions_of(response)
        return connection

    def close(self) -> None:
        """Withdraw the requests that wait."""
        with self.reactor.lock:
            self._connection.close()

    async def visible(self, partitions: Iterable[TopicPartition] | None) -> None:
        """Wait until the markers of a transaction in these partitions (None: in all) are durable, so that a
        read_committed consumer gets its records."""
        reactor = self.reactor
        engine = reactor.engine
        wanted = list(engine.logs if partitions is None else partitions)
        for log in [engine.logs[each] for each in wanted if each in engine.logs]:
            done: Promise[None] = Promise()
            engine.call(
                engine.durability.when_durable, log, lambda _, done=done: done.set(None),
                now_ms=reactor.wall_ms(),
            )  # fmt: skip
            await done


class InProcessConnection:
    """Calls the dispatcher with message objects. The broker answers every request, so there are no
    timeouts."""

    def __init__(self, node: Node, dispatcher: Dispatcher, peer: Peer, reactor: EngineReactor) -> None:
        self.node = node
        self.versions = Versions({}, {})
        self.is_closed = False
        self._dispatcher = dispatcher
        self._peer = peer
        self._reactor = reactor
        self._waiting: dict[Promise[Any], Callable[[], None] | None] = {}

    def request(self, name: str, version: int, message: Any, timeout_ms: int) -> Promise[Any]:
        """Run a request; see ``transport.Connection``."""
        if self.is_closed:
            return Promise.failed(ClosedError(f"{self._reactor.name}: the client is closed"))
        promise: Promise[Any] = Promise()

        def reply(response: Any) -> None:
            self._waiting.pop(promise, None)
            if isinstance(response, CloseConnection):
                promise.fail(NetworkError(response.reason))
            else:
                promise.set(response)

        withdraw = self._dispatcher.call(
            API_OF[name], version, message, self._peer, reply, on_error=promise.fail
        )
        if not promise.is_done:
            self._waiting[promise] = withdraw
        return promise

    def close(self) -> None:
        """Withdraw the requests that wait, and fail their promises."""
        self.is_closed = True
        waiting, self._waiting = self._waiting, {}
        for promise, withdraw in waiting.items():
            if withdraw is not None:
                withdraw()
            promise.fail(ClosedError(f"{self._reactor.name}: the client was closed"))
