"""``SimulatedTransport``: the requests of a client as message objects, through the simulated network to the
dispatcher of the simulated broker."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from txnkafka.client.promise import Promise
from txnkafka.client.transport import API_OF, Node, Versions
from txnkafka.client.versions import api_versions_request, versions_of
from txnkafka.errors import NetworkError
from txnkafka.testing.simulation.network import Connection as Link
from txnkafka.testing.simulation.network import Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.client.reactor import Timer
    from txnkafka.client.transport import Connection
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.simulated_reactor import SimulatedReactor

_BOOTSTRAP: Final = Node(-1, "simulated", 9092)
_FEATURE: Final = "transaction.version"
OLD_VERSIONS: Final = {
    "Produce": 12, "Fetch": 12, "Metadata": 9, "FindCoordinator": 3, "OffsetCommit": 9, "OffsetFetch": 7,
    "InitProducerId": 4, "JoinGroup": 7, "SyncGroup": 4, "Heartbeat": 3, "LeaveGroup": 3, "ListOffsets": 6,
}  # fmt: skip
"""Older versions of some requests: names of topics instead of ids, one key in FindCoordinator, one group in
OffsetFetch."""
_ONCE: Final = frozenset(
    {"OffsetCommit", "OffsetDelete", "DeleteGroups", "IncrementalAlterConfigs", "DeleteTopics"}
)


class Watcher(Protocol):
    """Sees the messages of a client on their way."""

    def sent(self, name: str, message: Any) -> None:
        """A request leaves the client."""
        ...

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """The response to a request has arrived."""
        ...

    def can_be_late(self, name: str, message: Any) -> bool:
        """Return False for requests whose late copy would have an effect, also in Apache Kafka."""
        ...


class SimulatedTransport:
    """The connections of a process. ``limits`` are the highest versions of some APIs, ``transaction_version``
    the highest one that the client knows."""

    def __init__(
        self, world: World, reactor: SimulatedReactor, name: str, watcher: Watcher, *,
        limits: Mapping[str, int] | None = None, transaction_version: int = 2,
    ) -> None:  # fmt: skip
        self.world = world
        self.reactor = reactor
        self.name = name
        self.watcher = watcher
        self.bootstrap = [_BOOTSTRAP]
        self._limits = limits or {}
        self._transaction_version = transaction_version
        self._upgrades = 0
        self._connections: list[SimulatedConnection] = []

    def connect(self, node: Node, timeout_ms: int) -> Promise[Connection]:
        """Open a connection, and ask for the versions; the network decides about them."""
        return self.reactor.spawn(self._connect(node, timeout_ms))

    async def _connect(self, node: Node, timeout_ms: int) -> Connection:
        self._connections = [each for each in self._connections if not each.is_closed]
        connection = SimulatedConnection(self, node)
        self._connections.append(connection)
        version = API_OF["ApiVersions"].announced[1]
        response = await connection.request("ApiVersions", version, api_versions_request(), timeout_ms)
        connection.versions = self._limited(versions_of(response))
        return connection

    def _limited(self, versions: Versions) -> Versions:
        ranges = dict(versions.ranges)
        for name, most in self._limits.items():
            least, theirs = ranges[name]
            ranges[name] = least, min(most, theirs)
        features = dict(versions.features)
        features[_FEATURE] = min(self._transaction_version, features.get(_FEATURE, 0))
        return Versions(ranges, features, versions.features_epoch + self._upgrades)

    def upgrade(self) -> None:
        """Let the client learn of transaction version 2, with its next connection."""
        self._transaction_version = 2
        self._upgrades += 1
        self._close("the broker was upgraded")

    async def visible(self, partitions: Iterable[TopicPartition] | None) -> None:
        """Return at once, as over a socket."""

    def close(self) -> None:
        """End all connections."""
        self._close("the client was closed")

    def _close(self, reason: str) -> None:
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.end(NetworkError(reason))


class SimulatedConnection:
    """A connection, which is the ``Receiver`` of the network."""

    def __init__(self, transport: SimulatedTransport, node: Node) -> None:
        self.node = node
        self.name = transport.name
        self.versions = Versions({}, {})
        self.is_closed = False
        self._transport = transport
        self._reactor = transport.reactor
        self._link = Link(self)
        self._waiting: dict[Request, Promise[Any]] = {}
        self._deadlines: deque[tuple[int, Request]] = deque()
        self._timer: Timer | None = None

    def request(self, name: str, version: int, message: Any, timeout_ms: int) -> Promise[Any]:
        """Send a request; see ``transport.Connection``."""
        if self.is_closed:
            return Promise.failed(NetworkError(f"{self.node}: the connection has ended"))
        watcher = self._transport.watcher
        watcher.sent(name, message)
        may_be_late = name not in _ONCE and watcher.can_be_late(name, message)
        request = Request(name, None, can_be_late=may_be_late)
        request.version, request.message, request.client_id = version, message, self.name
        promise = self._waiting[request] = Promise()
        self._deadlines.append((self._reactor.now_ms() + timeout_ms, request))
        if self._timer is None:
            self._timer = self._reactor.call_at(self._deadlines[0][0], self._look_at_time)
        self._transport.world.network.send(self._link, request)
        return promise

    def answered(self, request: Request, answer: Any) -> None:
        """Handle a response that has arrived."""
        if not request.is_over:
            request.is_over = True
            scheduler = self._transport.world.scheduler
            scheduler.note("answer", self.name, request.api, summary(request.api, answer))
            self._reactor.act(self._finish, request, answer)

    def disconnected(self, connection: Link) -> None:
        """Handle that the broker closed the connection."""
        if connection is self._link:
            self._reactor.act(self.end, NetworkError(f"{self.node} closed the connection"))

    def end(self, error: NetworkError) -> None:
        """Close the connection; its requests fail."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._transport.world.network.close(self._link)
        waiting, self._waiting = self._waiting, {}
        for request in waiting:
            request.is_over = True
        for promise in waiting.values():
            promise.fail(error)

    def _finish(self, request: Request, answer: Any) -> None:
        promise = self._waiting.pop(request, None)
        if promise is None:  # the process was frozen, and has given up since
            return
        watcher = self._transport.watcher
        watcher.answered(request.api, request.version, request.message, answer, request.sent_us)
        promise.set(answer)

    def _look_at_time(self) -> None:
        """Close the connection if a response is overdue."""
        self._timer = None
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._waiting:
            deadlines.popleft()
        if not deadlines:
            return
        at_ms, request = deadlines[0]
        if at_ms > self._reactor.now_ms():
            self._timer = self._reactor.call_at(at_ms, self._look_at_time)
            return
        world = self._transport.world
        world.scheduler.note("timeout", self.name, request.api)
        is_first = next(iter(self._waiting)) is request
        is_lost = self._link.is_broken or request.is_answered  # or the process was frozen
        if request.api == "Fetch" and is_first and not is_lost:  # unlike others, it limits its own wait
            world.complaints.append(f"overdue: the fetch that {self.name} sent at {request.sent_us}")
        self.end(NetworkError(f"{self.node} did not answer {request.api} in time"))


def summary(api: str, answer: Any) -> Any:
    """Return the part of a response for the trace: only numbers, which are cheap to hash."""
    if api == "Fetch":
        return [
            (int(row.error_code), row.high_watermark, row.last_stable_offset, len(row.records or b""))
            for topic in answer.responses for row in topic.partitions
        ]  # fmt: skip
    if api == "Produce":
        rows = [row for topic in answer.responses for row in topic.partition_responses]
        return [(int(row.error_code), row.base_offset) for row in rows]
    return int(getattr(answer, "error_code", 0))
