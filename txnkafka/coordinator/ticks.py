"""``Ticks``: a time for deadlines that never goes back, made of a wall clock that may.

Records carry the time of the wall. A deadline that was set while the clock was years ahead must still come
when it has been put right; so deadlines are in ticks, which pass as the wall clock does, and stand where it
is put back.
"""

from __future__ import annotations

__all__ = ["Ticks"]


class Ticks:
    """Milliseconds, equal to the wall clock until that is put back for the first time."""

    def __init__(self) -> None:
        self._last_ms: int | None = None
        self._ahead_ms = 0

    def at(self, now_ms: int) -> int:
        """The ticks at this time of the wall clock, which is the latest one."""
        if self._last_ms is not None and now_ms < self._last_ms:
            self._ahead_ms += self._last_ms - now_ms
        self._last_ms = now_ms
        return now_ms + self._ahead_ms

    def wall(self, ticks: int) -> int:
        """When the wall clock will show these ticks, unless it is set meanwhile."""
        return ticks - self._ahead_ms
