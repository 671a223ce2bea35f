"""ListPartitionReassignments: replicas that move between brokers (KIP-455); on one node there are none.

Version 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply

__all__ = ["handle"]


def handle(
    broker: Broker, request: ListPartitionReassignmentsRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer at once."""
    reply(ListPartitionReassignmentsResponse(error_message=None))
