"""The process that opened something to write. A child of a fork inherits its parent's memory, and with it
logs and directories that only the parent may write: it has neither the parent's locks nor its later
appends."""

from __future__ import annotations

import os

from txnkafka.errors import LogDirError

__all__ = ["Process", "this_process"]


class Process:
    """A process; ``is_here`` is False in its children. Whoever opens something keeps ``this_process()``."""

    __slots__ = ("is_here", "number")

    def __init__(self) -> None:
        self.is_here = True
        self.number = os.getpid()

    def check(self, path: str) -> None:
        """Raises LogDirError in another process than the one that opened ``path``."""
        if not self.is_here:
            raise LogDirError(
                f"{path} is held by process {self.number}, from which this process was forked, and only that "
                "process may write it: open a data directory after the fork, in the process that writes it"
            )


_current = Process()


def this_process() -> Process:
    """The running process."""
    return _current


def _begin_as_child() -> None:
    global _current
    _current.is_here = False
    _current = Process()


os.register_at_fork(after_in_child=_begin_as_child)
