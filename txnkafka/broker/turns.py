"""Changes of one thing of the registry, one after the other.

The image changes when a record is durable. A change that is decided by the image, such as more partitions for
a topic, must not be decided while an earlier change of the same topic is on its way to the disk.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from txnkafka.broker.durability import Durability
    from txnkafka.broker.failures import Failures

__all__ = ["Turns"]


class Turns:
    """Who changes what. A turn ends when its holder says so, once, whatever became of the change; that of a
    holder that raises while it begins ends, too."""

    def __init__(self, failures: Failures, durability: Durability) -> None:
        self._failures = failures
        self._durability = durability
        self._waiting: dict[Hashable, deque[Callable[[], None]]] = {}  # of what is being changed

    def take(self, thing: Hashable, begin: Callable[[], None]) -> None:
        """Call ``begin`` when no earlier change of ``thing`` is under way: now, or after its end."""
        waiting = self._waiting.get(thing)
        if waiting is not None:
            waiting.append(self._failures.owned(partial(self._begin, thing, begin)))
            return
        self._waiting[thing] = deque()
        self._begin(thing, begin)

    def end(self, thing: Hashable) -> None:
        """The change is in the image, or never will be: the next one begins soon."""
        waiting = self._waiting[thing]
        if waiting:
            self._durability.soon(waiting.popleft())
        else:
            del self._waiting[thing]

    def _begin(self, thing: Hashable, begin: Callable[[], None]) -> None:
        try:
            begin()
        except BaseException:
            self.end(thing)
            raise
