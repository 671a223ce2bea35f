"""``Timers``: calls at deadlines, each with a key to replace or cancel it.

Delaying a deadline, as every heartbeat does, costs one dictionary entry: the heap keeps the earlier time, and
checks again when that has come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final

NEVER: Final = (1 << 63) - 1
Key = tuple[str, ...]


class Timers:
    """Deadlines in ticks (see ``Ticks``). Only ``run`` makes calls, in the order of their deadlines."""

    def __init__(self) -> None:
        self._calls: dict[Key, tuple[int, Callable[[], None]]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._in_heap: dict[Key, int] = {}  # the earliest valid entry of each key
        self._numbers = count()

    def set(self, key: Key, deadline: int, call: Callable[[], None]) -> None:
        """Set the call and deadline of a key, in place of earlier ones."""
        self._calls[key] = deadline, call
        there = self._in_heap.get(key)
        if there is None or there > deadline:
            self._push(key, deadline)

    def cancel(self, key: Key) -> None:
        """Cancel the call of a key."""
        self._calls.pop(key, None)

    def is_set(self, key: Key) -> bool:
        """Return whether the key has a deadline."""
        return key in self._calls

    def next(self) -> int:
        """Return a time at or before the next deadline; NEVER without one."""
        while self._heap and self._heap[0][2] not in self._calls:
            self._pop()
        return self._heap[0][0] if self._heap else NEVER

    def run(self, now: int) -> None:
        """Make the calls that are due. The next run makes calls that these set for now, and calls after
        one that raises."""
        due: deque[tuple[Key, Callable[[], None]]] = deque()
        while self._heap and self._heap[0][0] <= now:
            key = self._pop()
            if key not in self._calls or key in self._in_heap:
                continue
            deadline, call = self._calls[key]
            if deadline > now:
                self._push(key, deadline)
            else:
                due.append((key, call))
        try:
            while due:
                key, call = due.popleft()
                if self._is_still(key, call):
                    del self._calls[key]
                    call()
        finally:
            for key, call in due:
                if self._is_still(key, call):
                    self._push(key, self._calls[key][0])

    def _is_still(self, key: Key, call: Callable[[], None]) -> bool:
        """Return whether the call was not cancelled and not replaced."""
        return key in self._calls and self._calls[key][1] is call

    def _push(self, key: Key, deadline: int) -> None:
        self._in_heap[key] = deadline
        heappush(self._heap, (deadline, next(self._numbers), key))

    def _pop(self) -> Key:
        deadline, _, key = heappop(self._heap)
        if self._in_heap.get(key) == deadline:
            del self._in_heap[key]
        return key
