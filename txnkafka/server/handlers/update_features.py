"""UpdateFeatures: changes the finalized levels of features (KIP-584).

Versions 0 to 2. Either all updates are made or none; up to version 1 the response has a row for each feature.
``metadata.version`` and ``kraft.version`` cannot be changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.registry.features import FeatureUpdate, update_features
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("UpdateFeatures")
def handle(broker: Broker, request: UpdateFeaturesRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the levels are durable and in effect."""

    def done(error: ErrorCode, message: str | None) -> None:
        if error != ErrorCode.NONE:
            said = f"The update failed for all features since the following feature had an error: {message}"
            reply(UpdateFeaturesResponse(error_code=error, error_message=said))
            return
        features = (
            [feature_update.feature for feature_update in request.feature_updates] if version <= 1 else []
        )
        results = tuple(UpdatableFeatureResult(feature=name, error_message="NONE") for name in features)
        reply(UpdateFeaturesResponse(error_message=None, results=results))

    updates = [
        FeatureUpdate(feature_update.feature, feature_update.max_version_level, feature_update.upgrade_type)
        for feature_update in request.feature_updates
    ]
    update_features(broker, updates, done, validate_only=request.validate_only)
