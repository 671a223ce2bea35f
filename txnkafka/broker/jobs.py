"""A queue of disk work, run one piece after another in the order of requests; and background work, run piece
by piece while nothing else waits.

The host takes the next piece under its lock, runs it without the lock, and hands it back under the lock.
After many jobs without work it gets a ``Pause``, so that other requests are served before the next jobs.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.failures import Failures, Owner
    from txnkafka.storage.work import Work

LOG = logging.getLogger("txnkafka.broker")
MOST_AT_ONCE: Final = 100  # jobs without work that are done in one call


class Job(NamedTuple):
    """A job: ``begin`` makes the work on its turn; ``on_done`` gets the error of either; ``owner`` gets an
    exception of ``on_done``."""

    begin: Callable[[], Work | None]
    on_done: Callable[[Exception | None], None]
    owner: Owner | None = None


class Pause:
    """Empty work, which lets other requests go first."""

    def run(self) -> None:
        """Do nothing."""

    def finish(self, error: Exception | None) -> None:
        """Do nothing."""


class Jobs:
    """A queue of jobs; at most one runs at a time."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._background: list[Callable[[], Job | None]] = []
        self._waiting: deque[Job] = deque()
        self._running: tuple[Work, Job] | None = None

    def __len__(self) -> int:
        """Return the number of unfinished jobs, including a running background job."""
        return len(self._waiting) + (self._running is not None)

    @property
    def has_next(self) -> bool:
        """Return whether a job waits, and none runs. Background work continues only after a flush or other
        work."""
        return self._running is None and bool(self._waiting)

    def add(self, begin: Callable[[], Work | None], on_done: Callable[[Exception | None], None]) -> None:
        """Add a job at the end of the queue."""
        self._waiting.append(Job(begin, on_done, self._failures.owner))

    def add_first(self, job: Job) -> None:
        """Add a job at the beginning of the queue: it continues the previous one."""
        self._waiting.appendleft(job)

    def add_background(self, find: Callable[[], Job | None]) -> None:
        """Register a function that returns a background job, or None; it is called when no job waits."""
        self._background.append(find)

    def _in_background(self) -> Job | None:
        for find in self._background:
            job = find()
            if job is not None:
                return job
        return None

    def begin(self) -> Work | None:
        """Return the next piece of work; None while one runs, or when none is left. A job without work, or
        whose work cannot begin, is completed here, with its error."""
        if self._running is not None:
            return None
        for _ in range(MOST_AT_ONCE):
            is_background = not self._waiting
            job = self._waiting.popleft() if self._waiting else self._in_background()
            if job is None:
                return None
            try:
                work = job.begin()
            except Exception as error:
                self._failed(job, error)
                continue
            if work is not None:
                self._running = work, job
                return work
            self._done(job, None)
            if is_background and not self._waiting:
                return None
        pause = Pause()
        self._running = pause, Job(lambda: None, lambda _: None)
        return pause

    def finish(self, work: Work, error: Exception | None) -> None:
        """Complete the work that was run, with its ``error`` or None. Raises ValueError for other work."""
        if self._running is None or self._running[0] is not work:
            raise ValueError("this work is not running: pass the work that begin_work returned last")
        job, self._running = self._running[1], None
        try:
            work.finish(error)
        except Exception as failed:
            error = error or failed
        if error is None:
            self._done(job, None)
        else:
            self._failed(job, error)

    def _failed(self, job: Job, error: Exception) -> None:
        """Complete a job with an error; any other than a disk error is a bug, and is logged with its
        traceback."""
        if not isinstance(error, KafkaError | OSError):
            LOG.error("a piece of work failed; the broker keeps running", exc_info=error)
        self._done(job, error)

    def _done(self, job: Job, error: Exception | None) -> None:
        self._failures.run(job.owner, job.on_done, error)
