"""``Ticks``: the time for deadlines, which passes whatever the wall clock is set to.

Records carry the time of the wall, and what is computed of it is of the wall, too: retention, the expiry of
offsets and ids. How long a member may be silent, a fetch may wait, and when to look again is in ticks: a
clock that is set, forward or back or to and fro, ends no session and puts no deadline off.

Source: ``SystemTimer``, whose clock is ``Time.hiResClockMs``.
"""

from __future__ import annotations

__all__ = ["Ticks"]


class Ticks:
    """Milliseconds since some time. They follow the wall clock until a host has said for the first time how
    time passes; from then on, it alone moves them."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now = now_ms
        self._ahead_ms: int | None = None  # of the clock of the host

    def tell(self, running_ms: int) -> None:
        """What a clock shows that is never set; its zero means nothing."""
        if self._ahead_ms is None:
            self._ahead_ms = self.now - running_ms
        self.now = running_ms + self._ahead_ms

    def at(self, now_ms: int) -> int:
        """The ticks of this moment, in which the wall clock shows ``now_ms``."""
        if self._ahead_ms is None:
            self.now = now_ms
        return self.now
