"""Work that waits for the disk, in the order in which it was asked for, one piece after the other, and
background work, of which a piece is run when nothing else waits.

The host takes the next piece under its lock, runs it without, and hands it back under the lock. Behind many
jobs that had no work it gets a ``Pause`` as work, so that other requests are looked at before the next jobs.
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

__all__ = ["MOST_AT_ONCE", "Job", "Jobs", "Pause"]

LOG = logging.getLogger("txnkafka.broker")
MOST_AT_ONCE: Final = 100  # jobs without work that are done in one call


class Job(NamedTuple):
    """``begin`` makes the work when its turn has come; ``on_done`` gets the error of either; ``owner`` is
    told when that raises."""

    begin: Callable[[], Work | None]
    on_done: Callable[[Exception | None], None]
    owner: Owner | None = None


class Pause:
    """Work without anything to do: what has come meanwhile goes first."""

    def run(self) -> None:
        """Nothing."""

    def finish(self, error: Exception | None) -> None:
        """Nothing depends on it."""


class Jobs:
    """A queue of jobs, of which one at most is under way."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._background: list[Callable[[], Job | None]] = []
        self._waiting: deque[Job] = deque()
        self._running: tuple[Work, Job] | None = None

    def __len__(self) -> int:
        """Jobs that are not done; one of the background counts while it is under way."""
        return len(self._waiting) + (self._running is not None)

    @property
    def has_next(self) -> bool:
        """Whether a job waits, and none is under way. The background goes on behind a flush or work only."""
        return self._running is None and bool(self._waiting)

    def add(self, begin: Callable[[], Work | None], on_done: Callable[[Exception | None], None]) -> None:
        """Do this behind everything that was added before."""
        self._waiting.append(Job(begin, on_done, self._failures.owner))

    def add_first(self, job: Job) -> None:
        """Do this before everything else: it continues what was done."""
        self._waiting.appendleft(job)

    def add_background(self, find: Callable[[], Job | None]) -> None:
        """Ask this for a job when none waits; None is that there is none."""
        self._background.append(find)

    def _in_background(self) -> Job | None:
        for find in self._background:
            job = find()
            if job is not None:
                return job
        return None

    def begin(self) -> Work | None:
        """The next piece of work to run; None when one is under way or none is left. A job without work, or
        whose work cannot begin, is done here, with the error."""
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
        """The work was run, and raised ``error`` if it is not None. Raises ValueError for work that is not
        under way."""
        if self._running is None or self._running[0] is not work:
            raise ValueError("this work is not under way")
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
        """The job ends with an error; one that is no error of the disk is a bug, of which more is logged."""
        if not isinstance(error, KafkaError | OSError):
            LOG.error("a piece of work failed; the broker goes on", exc_info=error)
        self._done(job, error)

    def _done(self, job: Job, error: Exception | None) -> None:
        self._failures.run(job.owner, job.on_done, error)
