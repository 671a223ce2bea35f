"""``ConsumerGroupConfig``: the settings ``group.consumer.*`` of the broker.

Source: GroupCoordinatorConfig, ConsumerGroupMigrationPolicy.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

from txnkafka.coordinator.group.assignors.assignor import Assign
from txnkafka.coordinator.group.assignors.range_assignor import assign_ranges
from txnkafka.coordinator.group.assignors.uniform_assignor import assign_uniformly

ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": assign_uniformly, "range": assign_ranges}
_SESSION: Final = "consumer.session.timeout.ms"
_HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
_ASSIGNMENT: Final = "consumer.assignment.interval.ms"


class MigrationPolicy(enum.Enum):
    """The allowed conversions of a group with members when members of the other protocol join or leave."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def may_upgrade(self) -> bool:
        """Return whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        """Return whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerGroupConfig(NamedTuple):
    """Members that name no assignor get the first of the ``assignors``."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = (1 << 31) - 1
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    assignment_interval_ms: int = 1_000
    regex_refresh_interval_ms: int = 600_000
    limits: Mapping[str, tuple[int, int]] = {}  # of the configs of a group

    def of_group(self, configs: Mapping[str, str]) -> ConsumerGroupConfig:
        """Return the settings with the configs of a group (KIP-848, resource type GROUP). If the broker's
        limits have changed since, a value beyond a limit counts as the limit."""
        if not configs:
            return self
        return self._replace(
            session_timeout_ms=self._limited(configs, _SESSION, self.session_timeout_ms),
            heartbeat_interval_ms=self._limited(configs, _HEARTBEAT, self.heartbeat_interval_ms),
            assignment_interval_ms=self._limited(configs, _ASSIGNMENT, self.assignment_interval_ms),
        )

    def _limited(self, configs: Mapping[str, str], name: str, default: int) -> int:
        try:
            value = int(configs[name])
        except (KeyError, ValueError):  # not set, or set without a check
            return default
        least, most = self.limits.get(name, (value, value))
        return min(max(value, least), most)
