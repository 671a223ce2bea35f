"""The finalized levels of features, and their change.

Source: ``FeatureControlManager`` (KIP-584, KIP-778).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.registry_change import register
from txnkafka.coordinator import metadata_records
from txnkafka.coordinator.cluster_image import BROKER_RESOURCE
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.metadata_records import LogRecord

__all__ = ["SUPPORTED_FEATURES", "FeatureUpdate", "UpgradeType", "update_features"]

SUPPORTED_FEATURES: Final = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""Lowest and highest level of each feature, as in Apache Kafka 4.3.1."""

_THING: Final = "features"
_ELR: Final = "eligible.leader.replicas.version"
_MIN_ISR: Final = "min.insync.replicas"
_FIXED: Final = {
    "metadata.version": "the records of the metadata log are those of this level",
    "kraft.version": "the voters of the metadata log stay where they are",
}


class UpgradeType(IntEnum):
    """What a client allows (``FeatureUpdate.UpgradeType``)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature and the level that it shall have."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def update_features(
    broker: Broker,
    updates: Sequence[FeatureUpdate],
    reply: Callable[[ErrorCode, str | None], None],
    *,
    validate_only: bool = False,
    now_ms: int,
) -> None:
    """Change levels, all or none of them. Answers when they are durable and in effect."""
    turn = broker.turns.of(_THING)
    broker.now_ms = now_ms

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
        elif validate_only or not records:
            broker.durability.soon(lambda: done(ErrorCode.NONE))
        else:
            register(broker, records, done)

    turn.take(begin)
    broker.durability.run_soon()


def _refusal(broker: Broker, update: FeatureUpdate) -> str | None:
    """Why a feature cannot have the level; None when it can."""
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
    if name not in SUPPORTED_FEATURES:
        return f"{controller} does not support this feature."
    low, high = SUPPORTED_FEATURES[name]
    if not low <= level <= high:
        return f"{controller} only supports versions {low}-{high}"
    if level < current and kind == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if level > current and kind != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    if level != current and name in _FIXED:
        return f"It cannot be changed: {_FIXED[name]}."
    return None


def _level(broker: Broker, name: str) -> int:
    if name == "kraft.version":
        return broker.metadata.kraft_version
    return broker.image.features.get(name, 0)


def _records(broker: Broker, update: FeatureUpdate) -> list[LogRecord]:
    """Nothing where the level stays. Where leaders may be elected out of those that have left the ISR, the
    limit of it must be the same for all brokers."""
    if update.level == _level(broker, update.name):
        return []
    records = [metadata_records.feature_level(update.name, update.level)]
    if update.name == _ELR and update.level:
        if _MIN_ISR not in broker.configs.of_cluster:
            records.append(metadata_records.config(BROKER_RESOURCE, "", _MIN_ISR, "1"))
        if _MIN_ISR in broker.configs.of_node:
            records.append(metadata_records.config(BROKER_RESOURCE, str(broker.node_id), _MIN_ISR, None))
    return records
