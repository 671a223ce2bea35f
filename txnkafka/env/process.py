"""Identifies the process that opened a directory for writing. A forked child inherits the objects of its
parent, but must not write: it has neither the parent's locks nor its later appends."""

from __future__ import annotations

import os

from txnkafka.errors import LogDirError

MOST_THREADS = 4  # by default: each thread takes memory for records decoded ahead


class Process:
    """A process; ``is_here`` is False in its children. A writer keeps the ``this_process()`` at its
    opening."""

    __slots__ = ("is_here", "number")

    def __init__(self) -> None:
        self.is_here = True
        self.number = os.getpid()

    def check(self, path: str) -> None:
        """Raise LogDirError unless this is the process that opened ``path``."""
        if not self.is_here:
            raise LogDirError(
                f"{path} is held by process {self.number}, from which this process was forked, and only that "
                "process may write it: open a data directory after the fork, in the process that writes it"
            )


_current = Process()


def this_process() -> Process:
    """Return the running process."""
    return _current


def thread_count(threads: int | None = None) -> int:
    """Return ``threads``; for None, the number of processors that this process may use, at most 4. Raises
    ValueError for a number below 1, TypeError unless it is an int."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
        return min(len(affinity(0)) if affinity else os.cpu_count() or 1, MOST_THREADS)
    if not isinstance(threads, int) or isinstance(threads, bool):
        raise TypeError(f"threads must be an int, not {threads!r}")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    return threads


def is_of_another_user(path: str) -> bool:
    """Return True if this process runs as root and another user owns ``path``, who could not open files that
    root creates there. Raises OSError."""
    return os.geteuid() == 0 and os.stat(path).st_uid != 0


def _begin_as_child() -> None:
    global _current
    _current.is_here = False
    _current = Process()


os.register_at_fork(after_in_child=_begin_as_child)
