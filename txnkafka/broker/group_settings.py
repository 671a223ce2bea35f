"""The settings of groups, as the coordinator takes them, and which of them contradict each other.

Source: ``GroupCoordinatorConfig``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.classic_rebalance import GroupConfig
from txnkafka.coordinator.consumer_config import ASSIGNORS, ConsumerGroupConfig, MigrationPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.broker_config import BrokerConfig

__all__ = ["check_groups", "group_config", "limited", "limits_of_consumer_groups"]


def check_groups(config: BrokerConfig) -> None:
    """Raise ValueError for settings that Kafka would refuse together."""
    for name, (low, value, high) in limits_of_consumer_groups(config).items():
        if not low <= value <= high:
            kind, _, stem = name.partition(".")
            limits = f"group.{kind}.min.{stem} and group.{kind}.max.{stem}: {low} and {high}"
            raise ValueError(f"group.{name} is {value}, and must be between {limits}")
    if config.group_consumer_heartbeat_interval_ms >= config.group_consumer_session_timeout_ms:
        raise ValueError("group.consumer.heartbeat.interval.ms must be less than the session timeout")
    assignors = _assignors(config)
    if not assignors or len(set(assignors)) < len(assignors) or not set(assignors) <= set(ASSIGNORS):
        known = " and ".join(ASSIGNORS)
        text = f"must name {known}, or one of them, not {config.group_consumer_assignors!r}"
        raise ValueError(f"group.consumer.assignors {text}")
    policies = [policy.value for policy in MigrationPolicy]
    if config.group_consumer_migration_policy.lower() not in policies:
        raise ValueError(f"group.consumer.migration.policy must be one of {', '.join(policies)}")


def limits_of_consumer_groups(config: BrokerConfig) -> dict[str, tuple[int, int, int]]:
    """By the config of a group: the least that it may be, its default, the most."""
    return {
        "consumer.heartbeat.interval.ms": (
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        "consumer.session.timeout.ms": (
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        ),
        "consumer.assignment.interval.ms": (
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
    }


def limited(config: BrokerConfig, name: str, text: str) -> str:
    """A setting of the registry, as it counts: one that was set within other limits counts as the limit."""
    limits = limits_of_consumer_groups(config).get(name.removeprefix("group."))
    if limits is None or not text.strip().isdecimal():
        return text
    return str(min(max(int(text), limits[0]), limits[2]))


def group_config(config: BrokerConfig) -> GroupConfig:
    """What the coordinator needs of the settings of the broker."""
    return GroupConfig(
        config.group_min_session_timeout_ms,
        config.group_max_session_timeout_ms,
        config.group_max_size,
        config.group_initial_rebalance_delay_ms,
        config.offset_metadata_max_bytes,
        config.offsets_retention_minutes * 60_000,
        config.offsets_retention_check_interval_ms,
        ConsumerGroupConfig(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_max_size,
            tuple(_assignors(config)),
            MigrationPolicy(config.group_consumer_migration_policy.lower()),
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_regex_refresh_interval_ms,
            {name: (low, high) for name, (low, _, high) in limits_of_consumer_groups(config).items()},
        ),
    )


def _assignors(config: BrokerConfig) -> Sequence[str]:
    return [name.strip() for name in config.group_consumer_assignors.split(",") if name.strip()]
