"""Timed work of a broker, and its earliest deadline.

A host asks after every request. Usually no work is due then and no deadline has become earlier, and finding
that out must be cheap. So the parts are asked only at the time that they have named, unless one calls
``look_again``.
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
        self._metadata_size = 0  # when the parts were last asked

    def look_again(self) -> None:
        """Ask all parts next time, because something may be due earlier than named."""
        self._due = _NOW

    def is_quiet(self, now_ms: int) -> bool:
        """Do due work of transactions; return whether a host has nothing to do before the ticks that
        ``advance`` has returned.
        """
        broker = self._broker
        return not (
            self._is_due(now_ms)
            or broker.transactions.advance(now_ms) < self._due
            or broker.manager.flushes.needs_host
            or broker.jobs.has_next
            or broker.durability.is_waiting
        )

    def advance(self, now_ms: int) -> int:
        """Do all due work; return the ticks at which to call again at the latest."""
        if self._is_due(now_ms):
            self._due = _NEVER
            self._due = min(self._all(now_ms), self._due)
        else:  # deadlines of transactions change with nearly every request
            self._due = min(self._broker.transactions.advance(now_ms), self._due)
        return self._due

    def flush(self, now_ms: int) -> int:
        """Begin a due flush that no client waits for; return the ticks at which the next one is due."""
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
        """Abandon background work; no piece of it may be running."""
        self._cleaner.close()
        self._snapshots.close()
