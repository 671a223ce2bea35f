"""Finalized levels of features, and their changes.

Source: ``FeatureControlManager`` (KIP-584, KIP-778).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.registry.registry_change import register, register_voter
from txnkafka.coordinator.registry import metadata_records
from txnkafka.coordinator.registry.cluster_image import BROKER_RESOURCE
from txnkafka.coordinator.registry.features import (
    KNOWN_FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
)
from txnkafka.coordinator.registry.features import (
    SERVED_FEATURES as SERVED_FEATURES,
)
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.registry.metadata_records import LogRecord

_THING: Final = "features"
_ELR: Final = "eligible.leader.replicas.version"
_MIN_ISR: Final = "min.insync.replicas"


class UpgradeType(IntEnum):
    """The changes that a client allows (``FeatureUpdate.UpgradeType``)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature and its new level."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def update_features(
    broker: Broker,
    updates: Sequence[FeatureUpdate],
    reply: Callable[[ErrorCode, str | None], None],
    *,
    validate_only: bool = False,
) -> None:
    """Change levels, either all or none. Answers when they are durable and in effect."""
    turn = broker.turns.of(_THING)

    def done(error: ErrorCode, message: str | None = None) -> None:
        if error == ErrorCode.NONE:
            level = broker.image.features.get("transaction.version", 0)
            broker.transactions.coordinator.version = level
        turn.end()
        reply(error, message)

    def begin() -> None:
        refused = next(filter(None, (_refusal(broker, update) for update in updates)), None)
        records = [record for update in updates for record in _records(broker, update)]
        if refused is not None:
            error = ErrorCode.INVALID_UPDATE_VERSION
            broker.durability.soon(lambda: done(error, refused))
        elif validate_only or all(update.level == _level(broker, update.name) for update in updates):
            broker.durability.soon(lambda: done(ErrorCode.NONE))
        elif any(_is_raised_quorum(broker, update) for update in updates):
            register_voter(broker.services, broker.data.identity.directory_id or "", records, done)
        else:
            register(broker.services, records, done)

    turn.take(begin)


def _refusal(broker: Broker, update: FeatureUpdate) -> str | None:
    """Return the refusal of a level, or None."""
    reason = _reason(broker, update)
    if reason is None:
        return None
    return f"Invalid update version {update.level} for feature {update.name}. {reason}"


def _reason(broker: Broker, update: FeatureUpdate) -> str | None:
    name, level, kind = update
    current, controller = _level(broker, name), f"Local controller {broker.node_id}"
    if kind not in tuple(UpgradeType):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if level == current and name in KNOWN_FEATURES:
        return None  # also for a feature that Apache Kafka has set, and this broker does not serve
    if name not in SERVED_FEATURES:
        return f"{controller} does not support this feature."
    low, high = SERVED_FEATURES[name]
    if not low <= level <= high:
        return f"{controller} only supports versions {low}-{high}"
    if level < current and kind == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if level > current and kind != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    if name == METADATA_VERSION:
        return "It cannot be changed: the records of the metadata log have the format of this level."
    if name == KRAFT_VERSION and level < current:
        return "It cannot be lowered: the voter stays in the metadata log."
    if name == KRAFT_VERSION and broker.data.identity.directory_id is None:
        return "meta.properties has no directory.id, by which the metadata log names a voter."
    return None


def finalized_features(broker: Broker) -> dict[str, int]:
    """Return the levels of the served features for clients, without level 0."""
    served = SERVED_FEATURES.keys() - {KRAFT_VERSION}
    levels = {name: level for name, level in broker.image.features.items() if name in served}
    return levels | ({KRAFT_VERSION: level} if (level := broker.metadata.kraft_version) else {})


def _is_raised_quorum(broker: Broker, update: FeatureUpdate) -> bool:
    return update.name == KRAFT_VERSION and update.level > _level(broker, KRAFT_VERSION)


def _level(broker: Broker, name: str) -> int:
    if name == KRAFT_VERSION:
        return broker.metadata.kraft_version
    return broker.image.features.get(name, 0)


def _records(broker: Broker, update: FeatureUpdate) -> list[LogRecord]:
    """Return the records of an update; none for an unchanged level.

    While eligible leader replicas are enabled, all brokers must have the same ``min.insync.replicas``. So a
    limit of this broker alone is removed, and the cluster gets one."""
    if update.level == _level(broker, update.name) or update.name == KRAFT_VERSION:
        return []
    records = [metadata_records.feature_level(update.name, update.level)]
    if update.name == _ELR and update.level:
        if _MIN_ISR not in broker.configs.of_cluster:
            records.append(metadata_records.config(BROKER_RESOURCE, "", _MIN_ISR, "1"))
        if _MIN_ISR in broker.configs.of_node:
            records.append(metadata_records.config(BROKER_RESOURCE, str(broker.node_id), _MIN_ISR, None))
    return records
