"""The wall clock in milliseconds since 1970, like Kafka's timestamps, and a monotonic clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of the current time."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        ...

    def running_ms(self) -> int:
        """Return milliseconds of a monotonic clock with an arbitrary zero."""
        ...


def running_seconds() -> float:
    """Return seconds of a monotonic clock with an arbitrary zero, for measuring durations."""
    return time.perf_counter()


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def running_ms(self) -> int:
        """Return milliseconds of a monotonic clock with an arbitrary zero."""
        return time.monotonic_ns() // 1_000_000
