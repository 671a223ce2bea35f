"""``MovableClock``: the machine's clock, plus a time by which a test has moved it."""

from __future__ import annotations

from txnkafka.env import SystemClock


class MovableClock(SystemClock):
    """Both clocks go on by themselves, and jump forward with ``advance``."""

    def __init__(self) -> None:
        self._moved_ms = 0

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        return super().now_ms() + self._moved_ms

    def running_ms(self) -> int:
        """Return milliseconds of a monotonic clock with an arbitrary zero."""
        return super().running_ms() + self._moved_ms

    def advance(self, ms: int) -> None:
        """Move both clocks forward. Raises ValueError for a negative time."""
        if ms < 0:
            raise ValueError(f"a clock moves forward only, not by {ms} ms")
        self._moved_ms += ms
