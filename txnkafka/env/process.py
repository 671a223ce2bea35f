"""Identifies the process that opened a directory for writing. A forked child inherits the objects of its
parent, but must not write: it has neither the parent's locks nor its later appends."""

from __future__ import annotations

import os

from txnkafka.errors import LogDirError

__all__ = ["Process", "is_of_another_user", "this_process", "thread_count"]

MOST_THREADS = 4  # by default; each takes memory for the records it decodes ahead


class Process:
    """A process; ``is_here`` is False in its children. An object that writes keeps the ``this_process()`` of
    its opening."""

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
    """Return ``threads``; for None one for each processor that this process may use, at most 4. Raises
    ValueError for a number below 1, TypeError for anything but an int."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
        return min(len(affinity(0)) if affinity else os.cpu_count() or 1, MOST_THREADS)
    if not isinstance(threads, int) or isinstance(threads, bool):
        raise TypeError(f"threads must be an int, not {threads!r}")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    return threads


def is_of_another_user(path: str) -> bool:
    """Whether root runs this, and somebody else owns ``path``, who could not open what is created there.
    Raises OSError."""
    return os.geteuid() == 0 and os.stat(path).st_uid != 0


def _begin_as_child() -> None:
    global _current
    _current.is_here = False
    _current = Process()


os.register_at_fork(after_in_child=_begin_as_child)
