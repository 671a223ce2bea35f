"""AlterConfigs: replaces all configs of a topic or of this broker; a missing config gets its default.

Versions 0 to 2. Newer clients use IncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.config.config_alteration import Alteration, Altered, ConfigChange, ConfigOp, alter_all
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("AlterConfigs")
def handle(broker: Broker, request: AlterConfigsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the new configs are durable and have taken effect."""

    def answer(results: list[Altered]) -> None:
        responses = tuple(AlterConfigsResourceResponse(**result._asdict()) for result in results)
        reply(AlterConfigsResponse(responses=responses))

    alterations = [_alteration(resource) for resource in request.resources]
    alter_all(broker, alterations, answer, validate_only=request.validate_only)


def _alteration(resource: AlterConfigsResource) -> Alteration:
    changes = [ConfigChange(config.name, ConfigOp.SET, config.value) for config in resource.configs]
    return Alteration(resource.resource_type, resource.resource_name, changes, is_whole=True)
