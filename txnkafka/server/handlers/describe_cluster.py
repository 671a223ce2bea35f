"""DescribeCluster: the brokers of the cluster, here one (KIP-700).

Versions 0 to 2. 1 can ask for controllers, which a broker listener refuses (KIP-919); 2 can ask for fenced
brokers, which do not exist here (KIP-1073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.server.handlers.metadata import ALL_OF_CLUSTER
from txnkafka.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_NOT_ASKED: Final = -(1 << 31)


@serves("DescribeCluster")
def handle(broker: Broker, request: DescribeClusterRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    kind = request.endpoint_type
    if kind != _BROKERS:
        is_known = kind == _CONTROLLERS
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        reply(
            DescribeClusterResponse(
                error_code=code,
                error_message=f"the request was sent to a broker, but asks for endpoints of type {kind}",
            )
        )
        return
    asked = request.include_cluster_authorized_operations
    node_id, node = broker.node_id, peer.node
    reply(
        DescribeClusterResponse(
            cluster_id=broker.cluster_id,
            controller_id=node_id,
            brokers=(DescribeClusterBroker(broker_id=node_id, host=node.host, port=node.port),),
            cluster_authorized_operations=ALL_OF_CLUSTER if asked else _NOT_ASKED,
        )
    )
