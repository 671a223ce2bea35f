"""The clock, in milliseconds since 1970 like Kafka's timestamps, and one that is never set."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock", "running_seconds"]


class Clock(Protocol):
    """A source of the current time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def running_ms(self) -> int:
        """Milliseconds of a clock that is never set; its zero means nothing."""
        ...


def running_seconds() -> float:
    """Seconds of a clock that is never set, to measure how long something took; its zero means nothing."""
    return time.perf_counter()


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def running_ms(self) -> int:
        """Milliseconds of a clock that is never set; its zero means nothing."""
        return time.monotonic_ns() // 1_000_000
