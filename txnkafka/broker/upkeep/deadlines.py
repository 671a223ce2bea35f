"""Timed work of a broker, and its earliest deadline.

A host asks after every request. Usually no work is due then and no deadline has become earlier, and finding
that out must be cheap. So the parts are asked only at the time that they have named, unless one calls
``look_again``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.registry.metadata_snapshots import MetadataSnapshots
from txnkafka.broker.upkeep.log_cleaner import LogCleaner
from txnkafka.broker.upkeep.maintenance import Maintenance

if TYPE_CHECKING:
    from txnkafka.broker.coordinators.groups import Groups
    from txnkafka.broker.coordinators.transactions import Transactions
    from txnkafka.broker.records.fetch import Fetches
    from txnkafka.broker.services import Services
    from txnkafka.broker.topics.missing_logs import MissingLogs

_NEVER: Final = (1 << 63) - 1


class Deadlines:
    """The parts of a broker that wait for a time."""

    def __init__(
        self,
        services: Services,
        fetches: Fetches,
        transactions: Transactions,
        groups: Groups,
        missing_logs: MissingLogs,
    ) -> None:
        now_ms = services.now_ms
        self._services = services
        self._fetches, self._missing_logs = fetches, missing_logs
        self._transactions, self._groups = transactions, groups
        self._maintenance = Maintenance(services, now_ms)
        self._cleaner = LogCleaner(services, now_ms)
        self._snapshots = MetadataSnapshots(services, now_ms)
        self._metadata_size = 0  # when the parts were last asked

    def is_quiet(self, now_ms: int) -> bool:
        """Do due work of transactions; return whether a host has nothing to do before the ticks that
        ``advance`` has returned."""
        services = self._services
        return not (
            self._is_due(now_ms)
            or self._transactions.advance(now_ms) < services.due
            or services.manager.flushes.needs_host
            or services.jobs.has_next
            or services.durability.is_waiting
        )

    def advance(self, now_ms: int) -> int:
        """Do all due work; return the ticks at which to call again at the latest."""
        services = self._services
        if self._is_due(now_ms):
            services.due = _NEVER
            services.due = min(self._all(now_ms), services.due)
        else:  # deadlines of transactions change with nearly every request
            services.due = min(self._transactions.advance(now_ms), services.due)
        return services.due

    def flush(self, now_ms: int) -> int:
        """Begin a due flush that no client waits for; return the ticks at which the next one is due."""
        return self._services.durability.advance(self._services.ticks.at(now_ms))

    def _is_due(self, now_ms: int) -> bool:
        services = self._services
        return (
            services.ticks.at(now_ms) >= services.due
            or self._groups.coordinator.is_earlier
            or services.metadata.size_since_snapshot != self._metadata_size
        )

    def _all(self, now_ms: int) -> int:
        services, ticks = self._services, self._services.ticks.at(now_ms)
        try:
            return min(
                self._fetches.advance(now_ms),
                self._transactions.advance(now_ms),
                self._groups.advance(now_ms),
                self._maintenance.advance(now_ms, ticks),
                self._cleaner.advance(now_ms, ticks),
                self._snapshots.advance(ticks),
                self._missing_logs.advance(now_ms, ticks),
            )
        except BaseException:
            services.look_again()
            raise
        finally:
            self._metadata_size = services.metadata.size_since_snapshot

    def close(self) -> None:
        """Abandon background work; none of its pieces may be running."""
        self._cleaner.close()
        self._snapshots.close()
