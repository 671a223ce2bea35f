"""LeaveGroup: members leave a group of the classic protocol.

Versions 0 to 5. Before 3 the request has one member, whose error is the error of the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.group.group_requests import Identity
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("LeaveGroup")
def handle(broker: Broker, request: LeaveGroupRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once; for members of a consumer group, when their leaving is durable."""
    if version < 3:
        leaving = [Identity(request.group_id, -1, request.member_id)]
    else:
        leaving = [
            Identity(request.group_id, -1, member.member_id, member.group_instance_id)
            for member in request.members
        ]

    def left(error: ErrorCode, errors: list[ErrorCode]) -> None:
        if version < 3:
            reply(LeaveGroupResponse(error_code=error or errors[0]))
            return
        members = tuple(
            MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=found
            )
            for each, found in zip(leaving, errors, strict=True)
        )
        reply(LeaveGroupResponse(error_code=error, members=() if error != ErrorCode.NONE else members))

    broker.groups.leave(request.group_id, leaving, left)
