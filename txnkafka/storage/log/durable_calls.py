"""Calls that wait until a log is durable up to an offset.

Source: ``DelayedProduce``, which waits for the high watermark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from txnkafka.errors import KafkaError

DurableCall = Callable[[OSError | KafkaError | None], None]


class DurableCalls:
    """The waiting calls of one log, in the order in which they were added. A call gets None once the log is
    durable up to its offset, or the error that prevents it. The log is at work during the call: the call may
    only take a note."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, DurableCall]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, call: DurableCall) -> None:
        """Add a call. A call with a lower offset than an earlier one waits for the earlier one."""
        self._waiting.append((offset, call))

    def release(self, durable_offset: int) -> None:
        """Call, in order, all that wait for an offset up to ``durable_offset``."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= durable_offset:
            waiting.popleft()[1](None)

    def fail(self, error: OSError | KafkaError, *, above: int = -1) -> None:
        """Call all that wait for an offset above ``above`` with ``error``."""
        waiting, self._waiting = self._waiting, deque()
        for offset, call in waiting:
            if offset > above:
                call(error)
            else:
                self._waiting.append((offset, call))
