"""What a broker does by the clock, and when the earliest of it is due.

A host asks behind every request. Mostly nothing is due then, and nothing was asked for that is due earlier:
that must cost next to nothing. So the parts are not asked before the time that they have named, unless one of
them says ``look_again``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.log_cleaner import LogCleaner
from txnkafka.broker.maintenance import Maintenance
from txnkafka.broker.metadata_snapshots import MetadataSnapshots
from txnkafka.coordinator.ticks import Ticks

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker

__all__ = ["Deadlines"]

_NOW: Final = -1
_NEVER: Final = (1 << 63) - 1


class Deadlines:
    """The parts of a broker that wait for a time."""

    def __init__(self, broker: Broker, now_ms: int) -> None:
        self._broker = broker
        self._ticks = Ticks()
        self._ticks.at(now_ms)  # the parts below begin with this time
        self._maintenance = Maintenance(broker, now_ms)
        self._cleaner = LogCleaner(broker, now_ms)
        self._snapshots = MetadataSnapshots(broker, now_ms)
        self._latest_ms = now_ms  # of the calls
        self._due_ms = _NOW  # by the wall clock, unless it is put back
        self._metadata_size = 0  # when the parts were asked

    def look_again(self) -> None:
        """Something may be due earlier than was said."""
        self._due_ms = _NOW

    def is_quiet(self, now_ms: int) -> bool:
        """Do what is due of transactions, and say whether nothing is left to do for a host before the time
        that ``advance`` has returned."""
        broker = self._broker
        return not (
            self._is_due(now_ms)
            or broker.transactions.advance(now_ms) < self._due_ms
            or broker.manager.tickets.has_something
            or broker.jobs.has_next
            or broker.durability.is_waiting
        )

    def advance(self, now_ms: int) -> int:
        """Do what is due; returns when to be called again at the latest."""
        ticks = self._ticks.at(now_ms)
        if self._is_due(now_ms):
            self._due_ms = _NEVER
            self._due_ms = min(self._all(now_ms, ticks), self._due_ms)
        else:  # their deadlines change with nearly every request
            self._due_ms = min(self._broker.transactions.advance(now_ms), self._due_ms)
        return self._due_ms

    def flush(self, now_ms: int) -> int:
        """Begin a flush that no client waits for when it is due; returns when one is."""
        return self._ticks.wall(self._broker.durability.advance(self._ticks.at(now_ms)))

    def _is_due(self, now_ms: int) -> bool:
        if now_ms < self._latest_ms:
            self._due_ms = _NOW
        self._latest_ms = now_ms
        broker = self._broker
        return (
            now_ms >= self._due_ms
            or broker.groups.coordinator.is_earlier
            or broker.metadata.size_since_snapshot != self._metadata_size
        )

    def _all(self, now_ms: int, ticks: int) -> int:
        broker, wall = self._broker, self._ticks.wall
        try:
            return min(
                broker.fetches.advance(now_ms),
                broker.transactions.advance(now_ms),
                broker.groups.advance(now_ms),
                wall(self._maintenance.advance(now_ms, ticks)),
                wall(self._cleaner.advance(now_ms, ticks)),
                wall(self._snapshots.advance(ticks)),
                wall(broker.missing_logs.advance(now_ms, ticks)),
            )
        except BaseException:
            self._due_ms = _NOW
            raise
        finally:
            self._metadata_size = broker.metadata.size_since_snapshot

    def close(self) -> None:
        """Give up what is under way in the background; no piece of it runs."""
        self._cleaner.close()
        self._snapshots.close()
