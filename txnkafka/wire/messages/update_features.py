"""UpdateFeatures (key 57): changes the finalized levels of features (KIP-584).

By version:

1  kinds of upgrades, only to validate (KIP-778)
2  no results of single features (KIP-1022)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int8, int16, int32, message, string


@message
class FeatureUpdateKey:
    """An element of ``feature_updates``."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


@message
class UpdateFeaturesRequest:
    """``UpdateFeaturesRequest.json``."""

    timeout_ms: int = int32(default=60000)
    feature_updates: tuple[FeatureUpdateKey, ...] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")


@message
class UpdatableFeatureResult:
    """An element of ``results``."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message
class UpdateFeaturesResponse:
    """``UpdateFeaturesResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: tuple[UpdatableFeatureResult, ...] = array(UpdatableFeatureResult, "0-1", ignorable=True)
