"""Serialize changes of one entity of the registry.

The image changes when a record is durable. A change that depends on the image, such as adding partitions to a
topic, must not be decided while an earlier change of the same topic is not durable.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from txnkafka.broker.durability import Durability
    from txnkafka.broker.failures import Failures


class Turns:
    """The queues of changes by entity."""

    def __init__(self, failures: Failures, durability: Durability) -> None:
        self.failures = failures
        self.durability = durability
        self.waiting: dict[Hashable, deque[Callable[[], None]]] = {}  # by the entity that is being changed

    def of(self, thing: Hashable) -> Turn:
        """Return a turn for a change of ``thing``, which has not begun."""
        return Turn(self, thing)


class Turn:
    """The turn of one change. Its holder ends it, whatever the outcome; an exception also ends it, at its
    begin or in a deferred call."""

    def __init__(self, turns: Turns, thing: Hashable) -> None:
        self._turns = turns
        self._thing = thing
        self._is_held = False

    def take(self, begin: Callable[[], None]) -> None:
        """Call ``begin`` once no earlier change of the entity is running: now, or after its end."""
        failures, owner = self._turns.failures, self._turns.failures.owner

        def failed(error: Exception) -> None:
            self.end()
            if owner is not None:
                owner(error)

        waiting = self._turns.waiting.get(self._thing)
        if waiting is not None:
            waiting.append(partial(failures.run, failed, self._begin, begin))
            return
        self._turns.waiting[self._thing] = deque()
        failures.owner = failed
        try:
            self._begin(begin)
        except BaseException:
            self.end()
            raise
        finally:
            failures.owner = owner

    def _begin(self, begin: Callable[[], None]) -> None:
        self._is_held = True
        begin()

    def end(self) -> None:
        """End the turn, after the change is in the image or has failed; the next one begins soon."""
        if not self._is_held:
            return
        self._is_held = False
        waiting = self._turns.waiting[self._thing]
        if waiting:
            self._turns.durability.soon(waiting.popleft())
        else:
            del self._turns.waiting[self._thing]
