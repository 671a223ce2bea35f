"""``Scheduler``: the events of a simulation in the order of their times, and a hash of all events."""

from __future__ import annotations

import hashlib
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LAST_EVENTS: Final = 40  # number of events kept for the report of a failure
_HASHED_TOGETHER: Final = 256


class Scheduler:
    """Times are in microseconds from the beginning of the simulation. Events of the same time happen in the
    order of scheduling, so that a run depends only on its seed.

    ``events`` counts messages delivered and timers fired; steps that ``later`` schedules are not counted."""

    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        self._heap: list[tuple[int, int, bool, Callable[..., None], tuple[Any, ...]]] = []
        self._scheduled = 0
        self._before: list[tuple[Any, ...]] = []  # the last hashed entries
        self._trace: list[tuple[Any, ...]] = []
        self._hash = hashlib.blake2b(digest_size=8)

    def event(self, delay_us: int, call: Callable[..., None], *arguments: Any) -> None:
        """Deliver a message, or fire a timer, after a delay."""
        self._scheduled = number = self._scheduled + 1
        heappush(self._heap, (self.now_us + delay_us, number, True, call, arguments))

    def later(self, delay_us: int, call: Callable[..., None], *arguments: Any) -> None:
        """Make a call after a delay: a step of the simulation itself, or a cancellable timer (which calls
        ``count`` unless cancelled)."""
        self._scheduled = number = self._scheduled + 1
        heappush(self._heap, (self.now_us + delay_us, number, False, call, arguments))

    def later_at(self, at_us: int, number: int, call: Callable[..., None], *arguments: Any) -> None:
        """Make a call at a time, ordered among calls of that time by a number from ``place``."""
        heappush(self._heap, (at_us, number, False, call, arguments))

    def place(self) -> int:
        """Return an order number for a step that is scheduled later."""
        self._scheduled += 1
        return self._scheduled

    def count(self) -> None:
        """Count a step as an event."""
        self.events += 1

    def note(self, *what: Any) -> None:
        """Add to the trace: numbers and texts only."""
        trace = self._trace
        trace.append((self.now_us, *what))
        if len(trace) == _HASHED_TOGETHER:
            self._hash_trace()

    @property
    def last(self) -> list[tuple[Any, ...]]:
        """Return the last events."""
        return [*self._before, *self._trace][-LAST_EVENTS:]

    def run(self, until_us: int) -> None:
        """Run all events until a time."""
        heap = self._heap
        while heap and heap[0][0] <= until_us:
            self.now_us, _, is_event, call, arguments = heappop(heap)
            if is_event:
                self.events += 1
            call(*arguments)
        self.now_us = max(self.now_us, until_us)

    def trace_hash(self) -> str:
        """Return a hash of the trace so far, in hexadecimal."""
        self._hash_trace()
        return self._hash.hexdigest()

    def _hash_trace(self) -> None:
        self._hash.update(repr(self._trace).encode())
        self._before = self.last
        self._trace.clear()
