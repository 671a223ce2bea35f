"""AlterConfigs: all configs of topics and of this broker at once; what is not named gets its default.

Versions 0 to 2. IncrementalAlterConfigs has taken its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.config_alteration import Alteration, ConfigChange, ConfigOp
from txnkafka.server.config_alterations import Altered, alter_all
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
        responses = tuple(
            AlterConfigsResourceResponse(
                error_code=each.error,
                error_message=each.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in results
        )
        reply(AlterConfigsResponse(responses=responses))

    wanted = [_wanted(each) for each in request.resources]
    alter_all(broker, wanted, answer, validate_only=request.validate_only)


def _wanted(resource: AlterConfigsResource) -> Alteration:
    changes = [ConfigChange(each.name, ConfigOp.SET, each.value) for each in resource.configs]
    return Alteration(resource.resource_type, resource.resource_name, changes, is_whole=True)
