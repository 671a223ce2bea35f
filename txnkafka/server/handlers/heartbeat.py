"""Heartbeat: keeps a member of a classic group alive. Versions 0 to 4; 3 has static members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.group.group_requests import Identity
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("Heartbeat")
def handle(broker: Broker, request: HeartbeatRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    identity = Identity(request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    reply(HeartbeatResponse(error_code=broker.groups.heartbeat(identity)))
