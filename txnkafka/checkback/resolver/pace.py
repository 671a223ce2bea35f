"""``Pace``: lets a busy loop pause, so that each turn takes more records together."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from txnkafka.client.reactor import Reactor

_TURNS: Final = 12
_BUSY_MS: Final = 50  # a loop is busy that takes so many turns in this time
_PAUSE_MS: Final = 3


class Pace:
    """A message costs three turns, for its half, its decision and its end. Up to 80 messages a second are
    moved one by one, at once; above that, several share a transaction, and wait for a few milliseconds."""

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._turns: deque[int] = deque(maxlen=_TURNS)

    def pause_ms(self) -> int:
        """Count a turn, and return the pause after it."""
        now = self._reactor.now_ms()
        turns = self._turns
        turns.append(now)
        return _PAUSE_MS if len(turns) == _TURNS and now - turns[0] < _BUSY_MS else 0
