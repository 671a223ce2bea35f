"""ListConfigResources: the resources that have configs (KIP-1142).

Versions 0 to 1. 0 lists client metrics subscriptions only (KIP-714); 1 lists all types, or the types in the
request. Broker loggers do not exist here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.server.config_entries import BROKER, GROUP, LOGGER, METRICS, TOPIC
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("ListConfigResources")
def handle(
    broker: Broker, request: ListConfigResourcesRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer at once."""
    supported = (METRICS,) if version == 0 else (TOPIC, BROKER, LOGGER, METRICS, GROUP)
    kinds = request.resource_types or supported
    if any(kind not in supported for kind in kinds):
        reply(ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    found = [(kind, name) for kind, name in broker.image.configs if kind in (GROUP, METRICS)]
    found += [(BROKER, str(broker.node_id)), *((TOPIC, name) for name in broker.image.topics)]
    resources = tuple(
        ConfigResource(resource_name=name, resource_type=kind) for kind, name in found if kind in kinds
    )
    reply(ListConfigResourcesResponse(config_resources=resources))
