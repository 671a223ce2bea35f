"""``SimulatedNode``: the host of a broker, with the scheduler as its executor and a disk in memory.

The broker is dropped where a process would die, and reopened on the remaining content of its disk. Its
pending requests are lost, except for requests delayed by the network.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from txnkafka.broker.broker import Broker, open_broker
from txnkafka.broker.host import CallerHost
from txnkafka.client.transport import API_OF
from txnkafka.errors import KafkaError
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.peer import CloseConnection, Peer
from txnkafka.server.peer import Node as ServerNode
from txnkafka.testing.simulation.disk import Died, SimulatedFiles, power_cut
from txnkafka.testing.simulation.epoch_watch import EpochWatch
from txnkafka.testing.simulation.flushing import Flushing

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from txnkafka.broker.config.broker_config import BrokerConfig
    from txnkafka.env import Random
    from txnkafka.storage.work import Work
    from txnkafka.testing.simulation.network import Connection, Network, Request
    from txnkafka.testing.simulation.scheduler import Scheduler
    from txnkafka.testing.simulation.swarm import Swarm

PATH: Final = "/data"
HOST: Final = "simulated"
START_MS: Final = 1_700_000_000_000
_TURN_US: Final = 20  # duration of a turn from its first call
_LONGEST_TIMER_US: Final = 60_000_000
_MOST_SESSIONS: Final = 4  # fewer than consumers, so that sessions are evicted
_MOST_CUTS: Final = 4  # of consecutive recoveries


def mortal(step: Callable[..., None]) -> Callable[..., None]:
    """Decorate a step of the broker's process, which may die in a disk call."""

    @wraps(step)
    def stepped(node: SimulatedNode, *arguments: Any) -> None:
        try:
            step(node, *arguments)
        except Died:
            node.on_death()

    return stepped


class SimulatedNode:
    """``broker`` is None while the node is down. ``on_death`` is called when its process dies in a disk call.
    ``awaited`` is a kind of request, and the call to make when the next one arrives. With
    ``checkpoints_next``, the recovery points are written after the next flush."""

    def __init__(
        self, scheduler: Scheduler, random: Random, swarm: Swarm, counts: Counter[str], config: BrokerConfig
    ) -> None:
        self.files = SimulatedFiles()
        self.broker: Broker | None = None
        self.network: Network
        self.on_death: Callable[[], None]
        self.awaited: tuple[str, Callable[[], None]] | None = None
        self.checkpoints_next = False
        self.clock_offset_ms = 0
        self.epochs = EpochWatch()
        self.generation = 0  # number of brokers started
        self._scheduler = scheduler
        self._random = random
        self._swarm = swarm
        self._counts = counts
        self._config = config
        self._connections: dict[Connection, None] = {}
        self._dispatcher: Dispatcher
        self._server: ServerNode
        self._flush: Flushing | None = None  # under way
        self._work: tuple[Work, bool, Exception | None] | None = None  # with: was it run, its error
        self._has_turn = False
        self._timer_us = -1
        self._advanced_ms = -1  # the time of the last call of advance, and its result
        self._deadline = 0

    def now_ms(self) -> int:
        """Return the node's wall clock in milliseconds, and report the passing of time to the broker."""
        if self.broker is not None:
            self.broker.ticks.tell(self._scheduler.now_us // 1000)
        return START_MS + self.clock_offset_ms + self._scheduler.now_us // 1000

    @property
    def is_disturbed(self) -> bool:
        """True if the disk has failed since this broker was opened, so that logs may be fenced."""
        return self.files.failures > 0

    @property
    def is_fenced(self) -> bool:
        """True if a log accepts no appends until the next start."""
        broker = self.broker
        if broker is None:
            return False
        logs = (broker.metadata.log, *broker.logs.values())
        return any(log.fenced is not None for log in logs)

    # Up and down

    def start(self) -> None:
        """Open the directory; the power may fail during that."""
        if self.broker is not None:  # it died in its clean stop, and is already restarted
            return
        cuts = 0
        while True:
            files = self.files
            begun = files.settled = len(files.journal)
            try:
                broker = self._open()
            except (KafkaError, OSError):
                if not files.failures:
                    raise
                self._counts["start failed by the disk"] += 1
                self._scheduler.note("start failed")
                files.is_full = False
                self._lose(files, is_power_cut=self._swarm.is_durable)
                continue
            changes = len(files.journal) - begun
            if not changes or cuts == _MOST_CUTS or not self._is_cut():
                break
            cuts += 1
            self._counts["recovery cut"] += 1
            self._lose(files, is_power_cut=True)
        files.failures = 0
        files.settled = len(files.journal)
        self.broker = broker
        self._dispatcher = Dispatcher(broker, self.now_ms)
        self._server = ServerNode(HOST, 9092, FetchSessions(_MOST_SESSIONS))
        self.epochs.started(broker)
        self._counts["start"] += 1
        self._scheduler.note("start", self.generation)
        self.wake()

    def _is_cut(self) -> bool:
        """Return True if the power fails during this recovery."""
        swarm = self._swarm
        may_fail = swarm.is_durable and "power cut" in swarm.faults
        return may_fail and self._random.random() < swarm.cut_recovery

    def _open(self) -> Broker:
        return open_broker(
            self.files, PATH, self._config, now_ms=self.now_ms(),
            durability="page_cache" if self._swarm.durability == "page_cache" else "fsync",
        )  # fmt: skip

    def power_cut(self) -> None:
        """Stop the machine: unsynced data may be lost."""
        self._down()
        self._lose(self.files, is_power_cut=True)

    def kill(self) -> None:
        """Kill the process: the system keeps all written data."""
        self._down()
        self._lose(self.files, is_power_cut=False)

    @mortal
    def stop(self) -> None:
        """Stop cleanly: accept no new requests, finish all work, then close."""
        broker = self.broker
        if broker is None:
            return
        self.finish()
        self._down()
        try:
            broker.close()
        except (KafkaError, OSError):
            if not self.files.failures:
                raise
        may_have_dropped = self.is_disturbed and self._swarm.is_durable  # see Faults
        self._lose(self.files, is_power_cut=may_have_dropped)

    def finish(self) -> None:
        """Finish all running work, and all work that it causes."""
        broker = self.broker
        if broker is None:
            return
        running, self._flush = self._flush, None
        if running is not None:
            broker.finish_flush(running.flush, running.sync_rest(), now_ms=self.now_ms())
        working, self._work = self._work, None
        if working is not None:
            work, was_run, error = working
            broker.finish_work(work, error if was_run else error_of(work), now_ms=self.now_ms())
        CallerHost(broker, self.now_ms).idle()

    def _down(self) -> None:
        self.broker = None
        self._flush = self._work = None
        self._advanced_ms = -1
        self.generation += 1
        self._timer_us = -1
        self._has_turn = False
        connections, self._connections = self._connections, {}
        for connection in connections:
            connection.withdrawals.clear()
            self.network.reset(connection)

    def _lose(self, files: SimulatedFiles, *, is_power_cut: bool) -> None:
        if is_power_cut:
            self.files = SimulatedFiles(power_cut(files, self._random))
        else:
            files.unlock_all()

    # Requests

    @mortal
    def receive(self, request: Request) -> None:
        """Handle an arriving request."""
        connection, api = request.connection, request.api
        is_awaited = self.awaited is not None and self.awaited[0] == api
        if self.awaited is not None and is_awaited:
            (_, call), self.awaited = self.awaited, None
            call()
        broker = self.broker
        self._scheduler.note("request", connection.client.name, api, broker is not None)
        if broker is None:
            self.network.reset(connection)
            return
        self._connections[connection] = None
        generation = self.generation

        def reply(answer: Any) -> None:
            if generation == self.generation and isinstance(answer, CloseConnection):
                self.network.reset(connection)
            elif generation == self.generation:
                self.network.answer(request, answer)

        self._counts[api] += 1
        withdraw = self._performed(broker, request, reply)
        if withdraw is not None and not request.is_answered:
            connection.withdrawals.append(withdraw)
        if not self._has_turn:
            self.wake()
        if is_awaited and self._random.random() < 0.4:  # a retrying client meets the consequences
            self._counts["connection cut"] += 1
            self.network.reset(connection)

    def _performed(
        self, broker: Broker, request: Request, reply: Callable[[Any], None]
    ) -> Callable[[], None] | None:
        if request.message is None:
            withdraw: Callable[[], None] | None = broker.call(
                request.perform, broker, reply, now_ms=self.now_ms()
            )
            return withdraw
        peer = Peer(self._server, request.client_id, HOST)
        return self._dispatcher.call(API_OF[request.api], request.version, request.message, peer, reply)

    def closed(self, connection: Connection) -> None:
        """Handle that a client closed its connection."""
        self._connections.pop(connection, None)

    # The host

    def wake(self) -> None:
        """Schedule a turn after a call of the broker."""
        if not self._has_turn and self.broker is not None:
            self._has_turn = True
            self._scheduler.later(_TURN_US, self._turn, self.generation)

    @mortal
    def _turn(self, generation: int) -> None:
        broker = self.broker
        if broker is None or generation != self.generation:
            return
        self._has_turn = False
        now_ms = self.now_ms()
        is_new = now_ms != self._advanced_ms
        if is_new:  # the broker's time has milliseconds: nothing new is due within one
            self._advanced_ms, self._deadline = now_ms, broker.advance(now_ms)
        flush = broker.begin_flush() if broker.is_flush_awaited else None
        if flush is not None:
            self._flush = Flushing(flush, self._random)
            self._scheduler.later(self._disk_us(), self._run_flush, generation)
        work = broker.begin_work()
        if work is not None:
            self._work = work, False, None
            self._scheduler.later(self._disk_us(), self._run_work, generation)
        self._set_timer(self._deadline - broker.ticks.now if is_new else 1)

    def _set_timer(self, delay_ms: int) -> None:
        delay = min(max(1, delay_ms * 1000), _LONGEST_TIMER_US)
        at = self._scheduler.now_us + delay
        if self._timer_us < 0 or at < self._timer_us:
            self._timer_us = at
            self._scheduler.later(delay, self._fire, self.generation, at)

    def _fire(self, generation: int, at: int) -> None:
        if generation == self.generation and at == self._timer_us:
            self.now_ms()
            if self.broker is not None and self.broker.ticks.now >= self._deadline:
                self._scheduler.count()
            self._timer_us = -1
            self._turn(generation)

    def _disk_us(self) -> int:
        return 1 + int(self._random.random() * self._swarm.sync_us)

    @mortal
    def _run_flush(self, generation: int) -> None:
        """Sync some logs now, others later, as the executor, and finally notify the broker."""
        running = self._flush
        if generation != self.generation or running is None:
            return
        running.sync_some()
        if running.is_synced:
            self._scheduler.event(_TURN_US, self._flushed, generation)
        else:
            self._counts["flush in several steps"] += 1
            self._scheduler.later(self._disk_us(), self._run_flush, generation)

    @mortal
    def _flushed(self, generation: int) -> None:
        broker, running = self.broker, self._flush
        if broker is None or running is None or generation != self.generation:
            return
        self._flush = None
        self.files.settled = len(self.files.journal)
        flush, failed = running.flush, running.failed
        self._scheduler.note("flushed", len(flush.logs), len(failed))
        broker.finish_flush(flush, failed, now_ms=self.now_ms())
        if self.checkpoints_next or self._random.random() < self._swarm.checkpoint:
            self.checkpoints_next = False
            self._counts["recovery points written"] += 1
            broker.jobs.add(lambda: broker.data.checkpoints.work(broker.logs), lambda _: None)
        self._turn(generation)

    @mortal
    def _run_work(self, generation: int) -> None:
        if generation == self.generation and self._work is not None:
            work = self._work[0]
            self._work = work, True, error_of(work)
            self._scheduler.event(_TURN_US, self._worked, generation)

    @mortal
    def _worked(self, generation: int) -> None:
        broker, running = self.broker, self._work
        if broker is None or running is None or generation != self.generation:
            return
        self._work = None
        self.files.settled = len(self.files.journal)
        work, _, error = running
        self._scheduler.note("work", type(work).__name__, error is None)
        broker.finish_work(work, error, now_ms=self.now_ms())
        self._turn(generation)


def error_of(work: Work) -> Exception | None:
    """Run a piece of work; return its error."""
    try:
        work.run()
    except (KafkaError, OSError) as error:
        return error
    return None
