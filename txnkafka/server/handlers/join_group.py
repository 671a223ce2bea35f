"""JoinGroup: joins a group of the classic protocol.

Versions 0 to 9. Before 1 the session timeout is also the rebalance timeout. From 4 on a dynamic member first
gets its id, and joins with it (KIP-394). 5 has static members (KIP-345). 9 lets the leader skip the
assignment (KIP-814).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.group.group_requests import Identity, Joined, JoinGroup, Protocol
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("JoinGroup")
def handle(broker: Broker, request: JoinGroupRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the group has a new generation."""
    rebalance_timeout_ms = request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms
    broker.groups.join(
        JoinGroup(
            Identity(request.group_id, -1, request.member_id, request.group_instance_id),
            request.protocol_type,
            tuple(Protocol(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
            request.session_timeout_ms,
            rebalance_timeout_ms,
            peer.client_id or "",
            f"/{peer.client_host}",
            needs_known_id=version >= 4,
            may_skip_assignment=version >= 9,
        ),
        lambda joined: reply(_response(joined, version)),
    )


def _response(joined: Joined, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol if version >= 7 else joined.protocol or "",
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=tuple(
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance, metadata=metadata)
            for member_id, instance, metadata in joined.members
        ),
    )
