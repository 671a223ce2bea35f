"""``Client``: a process that sends requests and waits for responses; its behaviour is a generator.

The generator yields a number of microseconds to sleep, or a list of requests to send at once; it then
receives the list of responses, with None for each request that timed out.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.testing.simulation.network import PATIENCE_US, Connection, Request

if TYPE_CHECKING:
    from collections import Counter

    from txnkafka.env import Random
    from txnkafka.testing.simulation.history import History
    from txnkafka.testing.simulation.network import Network
    from txnkafka.testing.simulation.scheduler import Scheduler
    from txnkafka.testing.simulation.swarm import Swarm

Steps = Generator[int | list[Request], Any, Any]
"""The steps of a client: times to sleep, or requests whose responses it waits for."""
BACKOFF_US: Final = 20_000
CALM_THINK_US: Final = 400_000
LONGEST_BACKOFF_US: Final = 200_000
MOST_ATTEMPTS: Final = 60

RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
# subset: decided before anything was written
WITHOUT_EFFECT: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS})


class World:
    """The shared state of the clients. ``is_ending``: they begin no new work. ``gave_up`` counts requests
    without a response after all retries."""

    def __init__(
        self, scheduler: Scheduler, network: Network, history: History, swarm: Swarm, counts: Counter[str]
    ) -> None:
        self.scheduler = scheduler
        self.network = network
        self.history = history
        self.swarm = swarm
        self.counts = counts
        self.is_ending = False
        self.is_calm = False
        self.complaints: list[str] = []  # observations that clients must not make
        self.gave_up = 0
        self.known_producers: set[int] = set()  # of transactional ids
        self.last_epochs: dict[str, int] = {}  # of transactional ids
        self.away: set[str | None] = set()  # instances that have left temporarily
        self.databases: dict[str, Any] = {}  # of transactional ids with two-phase commit
        self.upgraded: set[str] = set()  # transactional ids upgraded from version 1 to 2
        self.is_alone: Any = None  # tells whether a process is the last of its transactional id
        self.now_ms: Any = None


class Client:
    """A process with a unique ``name``. It ends with its ``steps``."""

    def __init__(self, world: World, name: str, random: Random) -> None:
        self.world = world
        self.name = name
        self.random = random
        self.is_over = False
        self.connection = Connection(self)
        self._steps = self.steps()
        self._waiting: list[Request] = []
        self._left = 0
        self._until_us = self._place = 0  # time of the timeout, and the place of its event
        self._timer_place = 0  # place of the scheduled check of the timeout; 0: none
        self._timer_us = 0

    def begin(self) -> None:
        """Run the first step."""
        self._resume(None)

    def steps(self) -> Steps:
        """Yield the steps of this client."""
        raise NotImplementedError

    def think(self) -> int:
        """Return the time until the next action, in microseconds."""
        least = CALM_THINK_US if self.world.is_calm else self.world.swarm.think_us
        return least // 4 + int(self.random.random() * least)

    def ask(
        self, api: str, perform: Any, *, can_be_late: bool = True, patience_us: int = PATIENCE_US
    ) -> Steps:
        """Send a request until its response is not a retriable error. Returns the response, or None, and True
        if an earlier attempt may have had an unknown effect."""
        is_uncertain, backoff = False, BACKOFF_US
        for _ in range(MOST_ATTEMPTS):
            (answer,) = yield [Request(api, perform, can_be_late=can_be_late, patience_us=patience_us)]
            if answer is not None:
                error = error_of(answer)
                if error not in RETRIABLE:
                    return answer, is_uncertain
                is_uncertain |= error not in WITHOUT_EFFECT
                self.world.counts[f"{api}: {error.name}"] += 1
            else:
                is_uncertain = True
            yield self.random.randrange(backoff // 2, backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_US)
        self.world.gave_up += 1
        return None, True

    # Callbacks of the network and the scheduler

    def answered(self, request: Request, answer: Any) -> None:
        """Handle the response to a request."""
        if request.is_over:
            return
        request.is_over = True
        if request.check is not None and answer is not None:
            request.check(answer)
        self.world.scheduler.note("answer", self.name, request.api, summary(answer))
        self._left -= 1
        if self._left == 0:
            self._resume([each.answer if each.is_answered else None for each in self._waiting])

    def disconnected(self, connection: Connection) -> None:
        """Handle that the broker closed the connection."""
        if connection is self.connection:
            self._give_up()

    def _be_patient(self, us: int) -> None:
        """Set a timeout. Few waits last that long: one scheduled event serves them all, and is postponed if
        it fires too early."""
        scheduler = self.world.scheduler
        self._until_us, self._place = scheduler.now_us + us, scheduler.place()
        if not self._timer_place or self._until_us < self._timer_us:
            self._set_timer()

    def _set_timer(self) -> None:
        self._timer_us, self._timer_place = self._until_us, self._place
        self.world.scheduler.later_at(self._until_us, self._place, self._looked_at, self._place)

    def _looked_at(self, place: int) -> None:
        if place != self._timer_place:
            return
        self._timer_place = 0
        if self._left and place == self._place:
            self._time_out()
        elif self._left:
            self._set_timer()

    def _time_out(self) -> None:
        self.world.scheduler.count()
        self.world.scheduler.note("timeout", self.name)
        if not self.connection.is_broken:
            self._note_overdue()
        self._give_up()

    def _note_overdue(self) -> None:
        """Record fetches without a response that the broker received: unlike other requests, a fetch limits
        its own wait."""
        for request in self._waiting:
            if request.api == "Fetch" and not request.is_over:
                self.world.complaints.append(f"overdue: the fetch that {self.name} sent at {request.sent_us}")

    def _give_up(self) -> None:
        """Stop waiting for the outstanding requests."""
        self.world.network.close(self.connection)
        self.connection = Connection(self)
        answers = []
        for request in self._waiting:
            answers.append(request.answer if request.is_over else None)
            request.is_over = True
        if self._left:
            self._left = 0
            self._resume(answers)

    def _woken(self) -> None:
        self.world.scheduler.note("timer", self.name)
        self._resume(None)

    def _resume(self, answers: list[Any] | None) -> None:
        self._waiting = []
        try:
            wanted = self._steps.send(answers)
        except StopIteration:
            self.is_over = True
            return
        if isinstance(wanted, int):
            self.world.scheduler.event(wanted, self._woken)
            return
        self._waiting, self._left = wanted, len(wanted)
        self._be_patient(max([each.patience_us for each in wanted]))
        send, connection = self.world.network.send, self.connection
        for request in wanted:
            send(connection, request)


def error_of(answer: Any) -> ErrorCode:
    """Return the error of a response, which has one, is one, or maps partitions to errors."""
    if isinstance(answer, ErrorCode):
        return answer
    if isinstance(answer, dict):
        return next((error for error in answer.values() if error != ErrorCode.NONE), ErrorCode.NONE)
    return answer.error  # type: ignore[no-any-return]


def summary(answer: Any) -> Any:
    """Return the part of a response for the trace: only numbers, which are cheap to hash."""
    if isinstance(answer, dict):
        return [_result(result) for result in answer.values()]
    if isinstance(answer, list):
        return [
            (int(each.error), each.high_watermark, each.last_stable_offset, len(each.data)) for each in answer
        ]
    return _result(answer)


def _result(result: Any) -> Any:
    if result is None or isinstance(result, int):
        return -1 if result is None else int(result)
    error = int(result.error)
    if hasattr(result, "base_offset"):
        return error, result.base_offset
    return (error, result.producer_id, result.producer_epoch) if hasattr(result, "producer_epoch") else error
