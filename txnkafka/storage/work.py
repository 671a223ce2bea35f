"""Work for the host: operations that wait for the disk run outside the lock that protects the logs.

The owner of the logs requests a piece of work under its lock, calls ``run`` without the lock, and ``finish``
under the lock. The work contains all its data: ``run`` reads no state that may change at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Work(Protocol):
    """One piece of work; ``run`` and ``finish`` are called once each, in this order."""

    def run(self) -> None:
        """Change the disk, and wait for it. Raises OSError and KafkaStorageError."""
        ...

    def finish(self, error: Exception | None) -> None:
        """Update the state for the result of ``run``, or for its ``error``."""
        ...


def perform(work: Work) -> None:
    """Run and finish a piece of work now, for a host without a lock. Raises the errors of ``run``."""
    error: Exception | None = OSError("the work was interrupted")  # by a signal: its effect is unknown
    try:
        work.run()
        error = None
    except Exception as raised:
        error = raised
        raise
    finally:
        work.finish(error)


def run_some(steps: Iterator[int], cost: int) -> bool:
    """Run steps, which yield their costs, until the total reaches ``cost``; return True once the steps are
    exhausted. This divides long work into pieces. Raises the errors of the steps."""
    spent = 0
    while spent < cost:
        step = next(steps, None)
        if step is None:
            return True
        spent += step
    return False
