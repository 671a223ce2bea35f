"""IncrementalAlterConfigs: single configs of topics and of this broker (KIP-339).

Versions 0 to 1. A config is set or deleted, or elements of a list are added and removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.config.config_alteration import Alteration, Altered, ConfigChange, alter_all
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("IncrementalAlterConfigs")
def handle(
    broker: Broker, request: IncrementalAlterConfigsRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer when the new configs are durable and have taken effect."""

    def answer(results: list[Altered]) -> None:
        responses = tuple(AlterConfigsResourceResponse(**result._asdict()) for result in results)
        reply(IncrementalAlterConfigsResponse(responses=responses))

    alterations = [_alteration(resource) for resource in request.resources]
    alter_all(broker, alterations, answer, validate_only=request.validate_only)


def _alteration(resource: AlterConfigsResource) -> Alteration:
    changes = [
        ConfigChange(config.name, config.config_operation, config.value) for config in resource.configs
    ]
    return Alteration(resource.resource_type, resource.resource_name, changes)
