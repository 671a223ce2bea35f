"""``Ticks``: the time for deadlines, which does not depend on the wall clock.

Records carry wall-clock time, and so does everything computed from it: retention, the expiry of offsets and
ids. Session timeouts, waits of a fetch and retries are measured in ticks: setting the clock, forward or back,
ends no session and delays no deadline.

Source: ``SystemTimer``, whose clock is ``Time.hiResClockMs``.
"""

from __future__ import annotations


class Ticks:
    """Milliseconds since an arbitrary time. They follow the wall clock until a host calls ``tell`` for the
    first time; from then on, only ``tell`` advances them."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now = now_ms
        self._ahead_ms: int | None = None  # ticks minus the clock of the host

    def tell(self, running_ms: int) -> None:
        """Set the ticks from a clock that is never set; its zero is arbitrary."""
        if self._ahead_ms is None:
            self._ahead_ms = self.now - running_ms
        self.now = running_ms + self._ahead_ms

    def at(self, now_ms: int) -> int:
        """Return the current ticks, at wall-clock time ``now_ms``."""
        if self._ahead_ms is None:
            self.now = now_ms
        return self.now
