"""DeleteGroups: deletes groups without members, with their offsets (KIP-229). Versions 0 to 3."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("DeleteGroups")
def handle(broker: Broker, request: DeleteGroupsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when all possible deletions are durable."""
    names = list(dict.fromkeys(request.groups_names))
    errors: dict[str, ErrorCode] = {}

    def deleted(name: str, error: ErrorCode) -> None:
        errors[name] = error
        if len(errors) == len(names):
            results = tuple(DeletableGroupResult(group_id=each, error_code=errors[each]) for each in names)
            reply(DeleteGroupsResponse(results=results))

    if not names:
        reply(DeleteGroupsResponse())
    for name in names:
        broker.groups.delete(name, partial(deleted, name))
