"""DescribeGroups: state and members of groups of the classic protocol.

Versions 0 to 6. Before 6 a missing group is described as Dead, without an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.server.handlers.metadata import ALL_OF_GROUP
from txnkafka.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

_NOT_ASKED: Final = -(1 << 31)


@serves("DescribeGroups")
def handle(broker: Broker, request: DescribeGroupsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once. A group that is named twice is described once."""
    operations = ALL_OF_GROUP if request.include_authorized_operations else _NOT_ASKED
    names = dict.fromkeys(request.groups)
    groups = tuple(_described(broker, group_id, version, operations) for group_id in names)
    reply(DescribeGroupsResponse(groups=groups))


def _described(broker: Broker, group_id: str, version: int, operations: int) -> DescribedGroup:
    found = broker.groups.describe(group_id)
    error = found.error
    is_unknown = error == ErrorCode.GROUP_ID_NOT_FOUND
    if is_unknown and version < 6:
        error = ErrorCode.NONE
    return DescribedGroup(
        error_code=error,
        error_message=found.message if is_unknown and version >= 6 else None,
        group_id=group_id,
        group_state=found.state if found.error in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND) else "",
        protocol_type=found.protocol_type,
        protocol_data=found.protocol,
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in found.members
        ),
        authorized_operations=_NOT_ASKED if error else operations,
    )
