"""``Network``: carries requests and responses, and loses, repeats and delays them.

A connection keeps the order of its requests and responses, as TCP and Kafka do; different connections are not
ordered. A lost or delayed request breaks its connection: the client times out and opens another one. A
delayed or repeated request arrives later on its own, perhaps several transactions later.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from txnkafka.env import Random
    from txnkafka.testing.simulation.scheduler import Scheduler
    from txnkafka.testing.simulation.swarm import Swarm

Perform = "Callable[[Any, Callable[[Any], None], int], Callable[[], None] | None]"
PATIENCE_US: Final = 400_000
_LEAST_LATENCY_US: Final = 20
_RESET_US: Final = 300  # until a client learns that the broker closed the connection


class Receiver(Protocol):
    """Protocol of a client."""

    name: str

    def answered(self, request: Request, answer: Any) -> None:
        """Handle the response to a request."""
        ...

    def disconnected(self, connection: Connection) -> None:
        """Handle that the other end closed the connection."""
        ...


class Request:
    """A request of a client. ``perform`` calls the broker: its arguments are the broker, the callback for the
    response, and the time of the broker's clock; it may return a function that withdraws the request. A
    request with a ``message``, of ``version`` and from ``client_id``, goes to the dispatcher instead.
    ``patience_us`` is the client's timeout, ``delay_us`` the delay after the previous request. ``check`` is
    called with a response within the timeout."""

    __slots__ = (
        "answer", "api", "can_be_late", "check", "client_id", "connection", "delay_us", "is_answered",
        "is_over", "message", "patience_us", "perform", "sent_us", "version",
    )  # fmt: skip

    def __init__(
        self, api: str, perform: Any, *, can_be_late: bool = True, patience_us: int = PATIENCE_US
    ) -> None:
        self.api = api
        self.perform = perform
        self.patience_us = patience_us
        self.can_be_late = can_be_late  # a copy may arrive after later requests
        self.connection: Connection
        self.check: Callable[[Any], None] | None = None
        self.answer: Any = None
        self.is_answered = False  # by the broker
        self.is_over = False  # for the client
        self.sent_us = 0
        self.delay_us = 0
        self.message: Any = None
        self.version = 0
        self.client_id = ""


class Connection:
    """A connection, and its requests whose responses have not been sent yet."""

    __slots__ = ("arrival_us", "client", "departure_us", "is_broken", "unanswered", "withdrawals")

    def __init__(self, client: Receiver) -> None:
        self.client = client
        self.arrival_us = 0
        self.departure_us = 0
        self.is_broken = False  # delivers nothing in either direction
        self.unanswered: deque[Request] = deque()
        self.withdrawals: list[Callable[[], None]] = []


class Network:
    """``is_calm``: no message is lost, repeated or late. ``counts`` has the number of each fault."""

    def __init__(self, scheduler: Scheduler, random: Random, swarm: Swarm, counts: Counter[str]) -> None:
        self.is_calm = False
        self.receive: Callable[[Request], None]
        self._scheduler = scheduler
        self._random = random
        self._swarm = swarm
        self._counts = counts

    def send(self, connection: Connection, request: Request) -> None:
        """Deliver a request to the broker, unless a fault prevents it."""
        scheduler, random, swarm = self._scheduler, self._random, self._swarm
        request.connection = connection
        request.sent_us = scheduler.now_us
        if connection.is_broken:
            return
        latency = _LEAST_LATENCY_US + int(random.random() * swarm.latency_us)
        if request.delay_us:
            latency += max(0, connection.arrival_us - request.sent_us) + request.delay_us
        if not self.is_calm:
            chance = random.random()
            if chance < swarm.drop:
                self._counts["request dropped"] += 1
                connection.is_broken = True
                return
            chance -= swarm.drop
            if chance < swarm.hold and request.can_be_late:
                self._counts["request held back"] += 1
                connection.is_broken = True
                scheduler.event(self._long_us(), self._arrive_late, request)
                return
            chance -= swarm.hold
            if chance < swarm.duplicate and request.can_be_late:
                self._counts["request duplicated"] += 1
                delay = self._long_us() if random.random() < 0.5 else random.randrange(swarm.latency_us * 4)
                scheduler.event(delay, self._arrive_late, request)
        now_us = request.sent_us
        connection.arrival_us = arrival = max(connection.arrival_us + 1, now_us + latency)
        connection.unanswered.append(request)
        scheduler.event(arrival - now_us, self._arrive, request)

    def _long_us(self) -> int:
        return self._random.randrange(1_000, self._swarm.longest_hold_us)

    def _arrive(self, request: Request) -> None:
        connection = request.connection
        if connection.is_broken:
            return
        self.receive(request)
        if not self.is_calm and self._random.random() < self._swarm.cut:
            self._counts["connection cut"] += 1
            self.reset(connection)

    def _arrive_late(self, request: Request) -> None:
        """Deliver a request late on a separate connection, and drop the response."""
        self._counts["request arrived late"] += request.is_over
        copy = Request(request.api, request.perform)
        copy.message, copy.version, copy.client_id = request.message, request.version, request.client_id
        copy.connection = Connection(request.connection.client)
        copy.connection.unanswered.append(copy)
        copy.is_over = True
        copy.sent_us = request.sent_us
        self.receive(copy)

    def answer(self, request: Request, answer: Any) -> None:
        """Send the broker's response to a request. Responses leave in the order of the requests. Raises
        RuntimeError for a second response."""
        if request.is_answered:
            raise RuntimeError(f"{request.api} is answered twice")
        request.answer, request.is_answered = answer, True
        connection, scheduler = request.connection, self._scheduler
        waiting = connection.unanswered
        while waiting and waiting[0].is_answered:
            leaving = waiting.popleft()
            if connection.is_broken or leaving.is_over:
                continue
            if not self.is_calm and self._random.random() < self._swarm.lose_answer:
                self._counts["answer lost"] += 1
                connection.is_broken = True
                continue
            latency = _LEAST_LATENCY_US + int(self._random.random() * self._swarm.latency_us)
            now_us = scheduler.now_us
            connection.departure_us = departure = max(connection.departure_us + 1, now_us + latency)
            scheduler.event(departure - now_us, self._delivered, leaving)

    def _delivered(self, request: Request) -> None:
        connection = request.connection
        if not connection.is_broken:
            connection.client.answered(request, request.answer)

    def reset(self, connection: Connection) -> None:
        """Break a connection, on behalf of the broker or the network. The client may be notified."""
        if connection.is_broken:
            return
        connection.is_broken = True
        if self.is_calm or self._random.random() < 0.8:
            delay = _RESET_US + self._random.randrange(self._swarm.latency_us)
            self._scheduler.event(delay, connection.client.disconnected, connection)

    def close(self, connection: Connection) -> None:
        """Close a connection for the client, and withdraw its requests that wait at the broker."""
        connection.is_broken = True
        withdrawals, connection.withdrawals = connection.withdrawals, []
        for withdraw in withdrawals:
            withdraw()
