"""Calls that wait until a log is durable up to an offset.

Source: ``DelayedProduce``, which waits for the high watermark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from txnkafka.errors import KafkaError

DurableCall = Callable[[OSError | KafkaError | None], None]


class DurableCalls(deque[tuple[int, DurableCall]]):
    """The waiting calls of one log with their offsets, in the order of their addition. A call gets None once
    the log is durable up to its offset, or the error that prevents it; it waits for all calls before it. The
    log is at work during the call: the call may only take a note."""

    def release(self, durable_offset: int) -> None:
        """Call, in order, all that wait for an offset up to ``durable_offset``."""
        while self and self[0][0] <= durable_offset:
            self.popleft()[1](None)

    def fail(self, error: OSError | KafkaError, *, above: int = -1) -> None:
        """Call all that wait for an offset above ``above`` with ``error``."""
        waiting = list(self)
        self.clear()
        for offset, call in waiting:
            if offset > above:
                call(error)
            else:
                self.append((offset, call))
