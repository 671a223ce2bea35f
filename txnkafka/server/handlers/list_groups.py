"""ListGroups: the groups of this broker. Versions 0 to 5; 4 filters by state, 5 by type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.server.handlers import serves
from txnkafka.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("ListGroups")
def handle(broker: Broker, request: ListGroupsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    groups = tuple(
        ListedGroup(
            group_id=each.group_id,
            protocol_type=each.protocol_type,
            group_state=each.state,
            group_type=each.group_type,
        )
        for each in broker.groups.listed()
        if (not states or each.state.lower() in states) and (not types or each.group_type in types)
    )
    reply(ListGroupsResponse(groups=groups))
