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

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker

__all__ = ["Deadlines"]

_NOW: Final = -1
_NEVER: Final = (1 << 63) - 1


class Deadlines:
    """The parts of a broker that wait for a time."""

    def __init__(self, broker: Broker, now_ms: int) -> None:
        self._broker = broker
        self._maintenance = Maintenance(broker, now_ms)
        self._cleaner = LogCleaner(broker, now_ms)
        self._snapshots = MetadataSnapshots(broker, now_ms)
        self._due = _NOW  # in ticks
        self._metadata_size = 0  # when the parts were asked

    def look_again(self) -> None:
        """Something may be due earlier than was said."""
        self._due = _NOW

    def is_quiet(self, now_ms: int) -> bool:
        """Do what is due of transactions, and say whether nothing is left to do for a host before the ticks
        that ``advance`` has returned."""
        broker = self._broker
        return not (
            self._is_due(now_ms)
            or broker.transactions.advance(now_ms) < self._due
            or broker.manager.flushes.needs_host
            or broker.jobs.has_next
            or broker.durability.is_waiting
        )

    def advance(self, now_ms: int) -> int:
        """Do what is due; returns the ticks at which to be called again at the latest."""
        if self._is_due(now_ms):
            self._due = _NEVER
            self._due = min(self._all(now_ms), self._due)
        else:  # their deadlines change with nearly every request
            self._due = min(self._broker.transactions.advance(now_ms), self._due)
        return self._due

    def flush(self, now_ms: int) -> int:
        """Begin a flush that no client waits for when it is due; returns the ticks at which one is."""
        return self._broker.durability.advance(self._broker.ticks.at(now_ms))

    def _is_due(self, now_ms: int) -> bool:
        broker = self._broker
        return (
            broker.ticks.at(now_ms) >= self._due
            or broker.groups.coordinator.is_earlier
            or broker.metadata.size_since_snapshot != self._metadata_size
        )

    def _all(self, now_ms: int) -> int:
        broker, ticks = self._broker, self._broker.ticks.at(now_ms)
        try:
            return min(
                broker.fetches.advance(now_ms),
                broker.transactions.advance(now_ms),
                broker.groups.advance(now_ms),
                self._maintenance.advance(now_ms, ticks),
                self._cleaner.advance(now_ms, ticks),
                self._snapshots.advance(ticks),
                broker.missing_logs.advance(now_ms, ticks),
            )
        except BaseException:
            self._due = _NOW
            raise
        finally:
            self._metadata_size = broker.metadata.size_since_snapshot

    def close(self) -> None:
        """Give up what is under way in the background; no piece of it runs."""
        self._cleaner.close()
        self._snapshots.close()
