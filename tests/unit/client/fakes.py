"""A transport without brokers: scripted answers, and a clock that moves only when everything waits for it.

    transport = FakeTransport(topics={"orders": 3})
    transport.answers["InitProducerId"] = lambda request: InitProducerIdResponse(producer_id=7)
    producer = Producer({...}, transport=transport.for_client)

An answer is a message, an exception that fails the request, or None: the test answers later, by
``request.reply(...)`` or ``request.fail(...)``. A caller that waits moves the clock to the next timer at
once, so timeouts and pauses take no real time; a test fails if nothing is left that could wake the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from txnkafka.client.promise import Promise
from txnkafka.client.reactor import Reactor
from txnkafka.client.transport import API_OF, Connection, Node, Versions
from txnkafka.errors import KafkaError, NetworkError
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from txnkafka.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class FakeClock:
    """``ms`` is the time of both clocks; a test sets it."""

    def __init__(self, ms: int = 1_000_000) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms

    def running_ms(self) -> int:
        return self.ms


class FakeReactor(Reactor):
    """No thread and no IO; ``settle`` lets time pass."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.fake_clock = clock or FakeClock()
        super().__init__("the fake reactor", self.fake_clock)

    def settle(self, ms: int = 0) -> None:
        """Make the calls that are due within the next ``ms`` of the clock."""
        with self.lock:
            until = self.fake_clock.ms + ms
            self._turn()
            while self._timers and self.now_ms() + self._timer_ms() <= until and self._timers:
                self.fake_clock.ms += self._timer_ms()
                self._turn()
            self.fake_clock.ms = max(self.fake_clock.ms, until)

    def _step(self) -> bool:
        pause = self._timer_ms()
        assert self._timers, "a caller waits, but nothing is left to happen"
        self.fake_clock.ms += pause
        return True

    def _pause_ms(self) -> int:
        return 0

    def _keep(self) -> None:
        raise AssertionError("the fake reactor has no thread")

    def _wake_keeper(self) -> None:
        pass

    def _leave(self) -> None:
        pass


class Request:
    """A request that a client has sent to ``node_id``, over ``connection``."""

    def __init__(self, connection: FakeConnection, name: str, version: int, message: Any) -> None:
        self.connection, self.node_id = connection, connection.node.node_id
        self.name, self.version, self.message = name, version, message
        self.promise = Promise[Any]()

    def reply(self, message: Any) -> None:
        self.promise.set(message)

    def fail(self, error: KafkaError | None = None) -> None:
        """Fail, by default as if the connection had ended."""
        self.promise.fail(error or NetworkError("the connection ended"))

    def __repr__(self) -> str:
        return f"{self.name} v{self.version} to {self.node_id}: {self.message}"


class FakeConnection:
    def __init__(self, transport: FakeTransport, node: Node) -> None:
        self.transport, self.node = transport, node
        self.versions = transport.versions
        self.is_closed = False

    def request(self, name: str, version: int, message: Any, timeout_ms: int) -> Promise[Any]:
        request = Request(self, name, version, message)
        transport = self.transport
        transport.requests.append(request)
        late = NetworkError(f"{self.node} did not answer {name} in time")
        transport.reactor.call_at(transport.reactor.now_ms() + timeout_ms, lambda: request.fail(late))
        answer = transport.answers[name](request)
        if isinstance(answer, BaseException):
            request.promise.fail(answer)
        elif answer is not None:
            request.reply(answer)
        return request.promise


class FakeTransport:
    """``topics`` are names and numbers of partitions; ``leaders`` may move a partition from node 0.
    ``versions`` limits APIs: ``{"Produce": 11}``."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        nodes: int = 1,
        versions: Mapping[str, int] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.reactor = FakeReactor()
        self.bootstrap = [Node(-1, "fake", 9092)]
        self.topics = dict(topics or {})
        self.leaders: dict[TopicPartition, int] = {}
        self.nodes = [Node(number, f"fake-{number}", 9092) for number in range(nodes)]
        ranges = {name: api.announced for name, api in API_OF.items()}
        ranges |= {name: (ranges[name][0], most) for name, most in (versions or {}).items()}
        self.versions = Versions(ranges, {"transaction.version": 2} if features is None else features, 1)
        self.requests: list[Request] = []
        self.answers: dict[str, Callable[[Request], Any]] = {
            "Metadata": self._metadata,
            "FindCoordinator": self._find_coordinator,
        }
        self.waits_visible: list[tuple[TopicPartition, ...]] = []

    def for_client(self, client_id: str) -> FakeTransport:
        return self

    def connect(self, node: Node, timeout_ms: int) -> Promise[Connection]:
        return Promise.of(FakeConnection(self, node))

    async def visible(self, partitions: Iterable[TopicPartition] | None) -> None:
        self.waits_visible.append(tuple(partitions or ()))

    def close(self) -> None:
        self.reactor.close()

    def sent(self, name: str) -> list[Request]:
        """Return the requests of one API, in order."""
        return [each for each in self.requests if each.name == name]

    def names(self) -> list[str]:
        """Return the APIs of all requests, in order, without Metadata."""
        return [each.name for each in self.requests if each.name != "Metadata"]

    def topic_id(self, topic: str) -> str:
        number = sorted(self.topics).index(topic) + 1
        return f"00000000-0000-0000-0000-{number:012d}"

    def topic_named(self, topic_id: str) -> str:
        return next(name for name in self.topics if self.topic_id(name) == topic_id)

    def _metadata(self, request: Request) -> MetadataResponse:
        asked = request.message.topics
        names = sorted(self.topics) if asked is None else [each.name for each in asked]
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port)
                for node in self.nodes
            ),
            controller_id=0,
            topics=tuple(self._topic(name) for name in names),
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(error_code=3, name=name)
        return MetadataResponseTopic(
            name=name,
            topic_id=self.topic_id(name),
            partitions=tuple(
                MetadataResponsePartition(
                    partition_index=number, leader_id=self.leaders.get(TopicPartition(name, number), 0)
                )
                for number in range(self.topics[name])
            ),
        )

    def _find_coordinator(self, request: Request) -> FindCoordinatorResponse:
        node = self.nodes[0]
        found = Coordinator(node_id=node.node_id, host=node.host, port=node.port)
        return FindCoordinatorResponse(
            node_id=node.node_id, host=node.host, port=node.port, coordinators=(found,)
        )
