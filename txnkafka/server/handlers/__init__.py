"""What the broker answers on the wire: one module an API, each with a function ``handle``.

A handler takes the broker, the message of a request, its version, its context, and whom to give the response:
``handle(broker, request, version, context, reply)``. It translates between messages and what the broker is
asked, and decides what depends on the version. Modules are imported with the first request of their API.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError
from txnkafka.server.error_response import error_response
from txnkafka.wire.messages.apis import APIS, Api

if TYPE_CHECKING:
    from txnkafka.server.context import Cancel, Context, Reply

__all__ = ["SERVED", "Handler", "handler_of"]

Handler = Callable[[Any, Any, int, Any, Any], "Cancel | None"]

LOG = logging.getLogger("txnkafka.server")
SERVED: Final = frozenset(
    api.key
    for api in APIS.values()
    if api.name
    in {
        "Produce",
        "Fetch",
        "ListOffsets",
        "Metadata",
        "FindCoordinator",
        "ApiVersions",
        "CreatePartitions",
        "CreateTopics",
        "DeleteTopics",
        "DeleteRecords",
        "InitProducerId",
        "OffsetForLeaderEpoch",
        "AddPartitionsToTxn",
        "AddOffsetsToTxn",
        "EndTxn",
        "WriteTxnMarkers",
        "DescribeConfigs",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "DescribeCluster",
        "DescribeProducers",
        "DescribeTransactions",
        "ListTransactions",
        "OffsetCommit",
        "OffsetFetch",
        "OffsetDelete",
        "TxnOffsetCommit",
        "JoinGroup",
        "SyncGroup",
        "Heartbeat",
        "LeaveGroup",
        "ConsumerGroupHeartbeat",
        "ConsumerGroupDescribe",
        "DescribeGroups",
        "ListGroups",
        "DeleteGroups",
        "DescribeLogDirs",
        "DescribeTopicPartitions",
        "ListPartitionReassignments",
        "AlterPartitionReassignments",
        "ElectLeaders",
        "DescribeQuorum",
        "UpdateFeatures",
        "ListConfigResources",
        "DescribeUserScramCredentials",
        "DescribeAcls",
        "CreateAcls",
        "DeleteAcls",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
        "AlterReplicaLogDirs",
        "UnregisterBroker",
        "DescribeClientQuotas",
        "AlterClientQuotas",
    }
)
"""Keys of the APIs that have a handler."""

_WITH_LEVEL: Final = ("Fetch", "ListOffsets")
_HANDLERS: Final[dict[int, Handler]] = {}


def handler_of(api: Api) -> Handler:
    """The handler of an API that is served."""
    handler = _HANDLERS.get(api.key)
    if handler is None:
        handler = import_module(f"txnkafka.server.handlers.{api.module}").handle
        if api.name in _WITH_LEVEL:
            handler = _answering_unknown_levels(api, handler)
        _HANDLERS[api.key] = handler
    return handler


def _answering_unknown_levels(api: Api, handler: Handler) -> Handler:
    """The handler of an API with isolation levels. Kafka reads the level here, too, and not with the message:
    one that there is not is an error of its request, and the connection goes on."""

    def answer(broker: Any, request: Any, version: int, context: Context, reply: Reply) -> Cancel | None:
        try:
            return handler(broker, request, version, context, reply)
        except InvalidRequestError as error:
            LOG.warning("%s: %s is refused: %s", context.client_host, api.name, error)
            reply(error_response(api, version, request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return None

    return answer
