"""Work for the host: what waits for the disk is done outside of the lock under which the logs are used.

Whoever owns the logs asks for a piece of work under its lock, calls ``run`` without it, and ``finish`` under
it again. What the work needs is in it: ``run`` looks at nothing that others may change meanwhile.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Work", "perform"]


class Work(Protocol):
    """One piece; ``run`` and ``finish`` are called once each, in this order."""

    def run(self) -> None:
        """Change the disk, and wait for it. Raises OSError and KafkaStorageError."""
        ...

    def finish(self, error: Exception | None) -> None:
        """Take over what ``run`` has done, or that it raised ``error``."""
        ...


def perform(work: Work) -> None:
    """Run and finish a piece of work here and now, for a host without a lock. Raises what ``run`` raises."""
    error: Exception | None = OSError("the work was interrupted")  # by a signal: nobody knows what was done
    try:
        work.run()
        error = None
    except Exception as raised:
        error = raised
        raise
    finally:
        work.finish(error)
