"""A broker on an event loop: one flush at a time, in another thread, and nothing forgotten."""

from __future__ import annotations

import asyncio
import errno
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from txnkafka.coordinator.ticks import Ticks
from txnkafka.server.broker_host import BrokerHost


class Clock:
    """``ms`` passes; the wall clock is ``ahead_ms``."""

    def __init__(self) -> None:
        self.ms, self.ahead_ms = 1000, 0

    def now_ms(self) -> int:
        return self.ms + self.ahead_ms

    def running_ms(self) -> int:
        return self.ms


class Timer:
    def __init__(self, at_ms: float, call: Callable[[], None]) -> None:
        self.at_ms, self.call, self.is_cancelled = at_ms, call, False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """An event loop that runs when it is told to."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.timers = clock, list[Timer]()
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def call_soon(self, call: Callable[[], None]) -> None:
        self._calls.put(call)

    def call_soon_threadsafe(self, call: Callable[..., None], *arguments: Any) -> None:
        self._calls.put(lambda: call(*arguments))

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.clock.ms + seconds * 1000, call))
        return self.timers[-1]

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        """Nothing is synced here."""

    def remove_reader(self, fd: int) -> None:
        """Nothing is synced here."""

    def run(self, count: int) -> None:
        """Make so many calls, waiting for those of threads."""
        for _ in range(count):
            self._calls.get(timeout=10)()

    @property
    def is_empty(self) -> bool:
        return self._calls.empty()


class Piece:
    """A flush or a piece of work."""

    def __init__(self, log: str) -> None:
        self.logs = [(log, None)]
        self.may_run = threading.Event()
        self.error: Exception | None = None
        self.thread = 0

    def descriptors(self) -> list[tuple[str, int]]:
        return []

    def run(self) -> dict[str, OSError]:
        assert self.may_run.wait(10)
        self.thread = threading.get_ident()
        if self.error is not None:
            raise self.error
        return {}


class Broker:
    """Notes what its host does."""

    def __init__(self) -> None:
        self.flushes: list[Piece] = []
        self.works: list[Piece] = []
        self.running: list[Piece] = []
        self.calls: list[Any] = []
        self.deadline = 2000
        self.ticks = Ticks(1000)
        self.is_flush_awaited = True

    def advance(self, now_ms: int) -> int:
        self.calls.append(("advance", now_ms))
        return self.deadline

    def begin_flush(self) -> Piece | None:
        return self._begin(self.flushes)

    def begin_work(self) -> Piece | None:
        return self._begin(self.works)

    def _begin(self, pieces: list[Piece]) -> Piece | None:
        if pieces and pieces[0] not in self.running:
            self.running.append(pieces[0])
            return pieces[0]
        return None

    def finish_flush(self, flush: Piece, failed: Any, *, now_ms: int) -> None:
        self.calls.append(("flushed", flush.logs[0][0], {log: str(error) for log, error in failed.items()}))
        self.flushes.remove(flush)

    def finish_work(self, work: Piece, error: Exception | None, *, now_ms: int) -> None:
        self.calls.append(("worked", work.logs[0][0], None if error is None else str(error)))
        self.works.remove(work)


class Hosted:
    def __init__(self) -> None:
        self.broker, self.clock = Broker(), Clock()
        self.loop, self.failures, self.turns = Loop(self.clock), list[BaseException](), 0
        self.host = BrokerHost(
            self.broker, self.loop, self.clock, on_turn=self.on_turn, on_failure=self.failures.append
        )  # type: ignore[arg-type]

    def on_turn(self) -> None:
        self.turns += 1

    def said(self, kind: str) -> list[Any]:
        return [call[1:] for call in self.broker.calls if call[0] == kind]


@pytest.fixture
def hosted() -> Any:
    made = Hosted()
    yield made
    made.host.close()


def test_one_turn_for_many_wakes(hosted: Hosted) -> None:
    for _ in range(5):
        hosted.host.wake()
    hosted.loop.run(1)
    assert hosted.loop.is_empty
    assert (hosted.turns, hosted.said("advance")) == (1, [(1000,)])


def test_a_turn_at_once_is_taken_unless_one_comes_soon(hosted: Hosted) -> None:
    hosted.host.turn()
    assert (hosted.turns, hosted.said("advance")) == (1, [(1000,)])
    hosted.host.wake()
    hosted.host.turn()
    assert hosted.turns == 1
    hosted.loop.run(1)
    assert hosted.turns == 2
    hosted.host.stop()
    hosted.host.turn()
    assert hosted.turns == 2


def test_while_one_flush_runs_the_next_gathers(hosted: Hosted) -> None:
    first, second = Piece("a"), Piece("b")
    hosted.broker.flushes = [first, second]
    hosted.host.wake()
    hosted.loop.run(1)
    hosted.host.wake()
    hosted.loop.run(1)
    assert hosted.broker.running == [first]
    first.may_run.set()
    hosted.loop.run(1)
    assert hosted.said("flushed") == [("a", {})]
    assert hosted.broker.running == [first, second]
    second.may_run.set()
    hosted.loop.run(1)
    assert hosted.said("flushed") == [("a", {}), ("b", {})]
    assert first.thread == second.thread != threading.get_ident()


def test_a_flush_that_nobody_waits_for_is_not_begun() -> None:
    hosted = Hosted()
    hosted.broker.flushes, hosted.broker.is_flush_awaited = [Piece("a")], False
    hosted.host.wake()
    hosted.loop.run(1)
    assert hosted.broker.running == []
    hosted.broker.is_flush_awaited = True
    hosted.host.wake()
    hosted.loop.run(1)
    assert len(hosted.broker.running) == 1
    hosted.broker.flushes[0].may_run.set()
    hosted.host.close()


def test_a_flush_that_raises_has_failed_for_all_its_logs(hosted: Hosted) -> None:
    flush = Piece("a")
    flush.error = RuntimeError("no")
    flush.may_run.set()
    hosted.broker.flushes = [flush]
    hosted.host.wake()
    hosted.loop.run(2)
    assert hosted.said("flushed") == [("a", {"a": "no"})]
    assert hosted.failures == []


class Files:
    """A flush that only syncs files."""

    def __init__(self, *descriptors: int) -> None:
        self.logs = [(Log(), None) for _ in descriptors]
        self._descriptors = descriptors

    def descriptors(self) -> list[tuple[Log, int]]:
        return [(log, descriptor) for (log, _), descriptor in zip(self.logs, self._descriptors, strict=True)]


class Log:
    """One of a flush."""


def test_files_are_synced_without_the_thread(tmp_path: Path) -> None:
    loop, broker, results = asyncio.new_event_loop(), Broker(), list[Any]()

    def finish(flush: Files, failed: Any, *, now_ms: int) -> None:
        results.append([failed.get(log) for log, _ in flush.logs])
        broker.flushes.remove(flush)  # type: ignore[arg-type]
        if not broker.flushes:
            loop.stop()

    broker.finish_flush = finish  # type: ignore[assignment, method-assign]
    host = BrokerHost(
        broker, loop, Clock(), on_turn=lambda: None, on_failure=results.append
    )  # type: ignore[arg-type]
    with (tmp_path / "a").open("wb") as file:
        broker.flushes = [Files(file.fileno()), Files(file.fileno(), 1 << 20)]  # type: ignore[list-item]
        host.wake()
        loop.call_later(20, loop.stop)
        loop.run_forever()
    host.close()
    loop.close()
    (first,), (second, third) = results
    assert (first, second) == (None, None)
    assert third is not None
    assert third.errno == errno.EBADF


@pytest.mark.parametrize("error", [None, OSError("full")])
def test_work(hosted: Hosted, error: Exception | None) -> None:
    work = Piece("w")
    work.error = error
    work.may_run.set()
    hosted.broker.works = [work]
    hosted.host.wake()
    hosted.loop.run(2)
    assert hosted.said("worked") == [("w", None if error is None else "full")]


def test_the_earliest_deadline_counts(hosted: Hosted) -> None:
    loop, broker = hosted.loop, hosted.broker
    for deadline in (5000, 3000, 4000):
        broker.deadline = deadline
        hosted.host.wake()
        loop.run(1)
    assert [(timer.at_ms, timer.is_cancelled) for timer in loop.timers] == [(5000, True), (3000, False)]
    hosted.clock.ms, broker.deadline = 3000, 9000
    loop.timers[-1].call()
    assert hosted.said("advance")[-1] == (3000,)
    assert loop.timers[-1].at_ms == 9000


@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000])
def test_the_earliest_deadline_counts_when_the_clock_is_set(hosted: Hosted, by_ms: int) -> None:
    loop, broker = hosted.loop, hosted.broker
    for deadline in (5000, 3000):
        broker.deadline = deadline
        hosted.host.wake()
        loop.run(1)
        hosted.clock.ahead_ms = by_ms
    assert [(timer.at_ms, timer.is_cancelled) for timer in loop.timers] == [(5000, True), (3000, False)]
    assert hosted.said("advance") == [(1000,), (1000 + by_ms,)]


def test_a_deadline_that_is_over_or_never_comes(hosted: Hosted) -> None:
    for deadline, at_ms in ((2**63, 61_000), (10, 1000)):
        hosted.broker.deadline = deadline
        hosted.host.wake()
        hosted.loop.run(1)
        assert hosted.loop.timers[-1].at_ms == at_ms


def test_an_exception_of_the_broker_ends_it(hosted: Hosted) -> None:
    flush = Piece("a")
    flush.may_run.set()
    hosted.broker.flushes = [flush, Piece("b")]

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("bug")

    hosted.broker.finish_flush = fails  # type: ignore[method-assign]
    hosted.host.wake()
    hosted.loop.run(2)
    assert [str(error) for error in hosted.failures] == ["bug"]
    hosted.host.wake()
    hosted.loop.run(1)
    assert hosted.broker.running == [flush]


def test_nothing_begins_after_a_stop(hosted: Hosted) -> None:
    hosted.broker.flushes = [Piece("a")]
    hosted.host.wake()
    hosted.host.stop()
    hosted.loop.run(1)
    assert hosted.broker.running == []
