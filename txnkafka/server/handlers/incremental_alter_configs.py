"""IncrementalAlterConfigs: single configs of topics and of this broker (KIP-339).

Versions 0 to 1. A config is set or deleted, or elements of a list are added and removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.config_alteration import Alteration, ConfigChange, ConfigOp
from txnkafka.error_codes import ErrorCode
from txnkafka.server.config_alterations import Altered, alter_all
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
    wanted = {i: _wanted(each) for i, each in enumerate(request.resources) if _is_known(each)}

    def answer(results: list[Altered]) -> None:
        found = dict(zip(wanted, results, strict=True))
        reply(
            IncrementalAlterConfigsResponse(
                responses=tuple(
                    _response(found[i]) if i in found else _response(_unknown(each))
                    for i, each in enumerate(request.resources)
                )
            )
        )

    alter_all(broker, list(wanted.values()), answer, validate_only=request.validate_only)


def _is_known(resource: AlterConfigsResource) -> bool:
    return all(each.config_operation in tuple(ConfigOp) for each in resource.configs)


def _unknown(resource: AlterConfigsResource) -> Altered:
    operations = (each.config_operation for each in resource.configs)
    unknown = next(each for each in operations if each not in tuple(ConfigOp))
    message = f"Unknown operations type {unknown}"
    return Altered(resource.resource_type, resource.resource_name, ErrorCode.INVALID_REQUEST, message)


def _wanted(resource: AlterConfigsResource) -> Alteration:
    changes = [
        ConfigChange(each.name, ConfigOp(each.config_operation), each.value) for each in resource.configs
    ]
    return Alteration(resource.resource_type, resource.resource_name, changes)


def _response(result: Altered) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=result.error,
        error_message=result.message,
        resource_type=result.resource_type,
        resource_name=result.resource_name,
    )
