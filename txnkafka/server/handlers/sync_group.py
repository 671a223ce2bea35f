"""SyncGroup: takes the assignments from the leader of a generation, and returns each member its own.

Versions 0 to 5. 3 has static members (KIP-345). 5 names the protocol, which must be the protocol of the
group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.group.group_requests import Identity, SyncGroup
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("SyncGroup")
def handle(broker: Broker, request: SyncGroupRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the assignments are durable."""
    if version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        reply(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    broker.groups.sync(
        SyncGroup(
            Identity(request.group_id, request.generation_id, request.member_id, request.group_instance_id),
            {assignment.member_id: bytes(assignment.assignment) for assignment in request.assignments},
            request.protocol_type,
            request.protocol_name,
        ),
        lambda synced: reply(
            SyncGroupResponse(
                error_code=synced.error,
                protocol_type=synced.protocol_type,
                protocol_name=synced.protocol,
                assignment=synced.assignment,
            )
        ),
    )
