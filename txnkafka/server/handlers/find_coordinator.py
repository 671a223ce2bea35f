"""FindCoordinator: the coordinator of groups and transactional ids, which is this broker.

Versions 0 to 6. 0 asks for groups only; 1 adds key type 1, transactions; from 4 on a request has several keys
(KIP-699); 6 has key type 2, share groups, which are unsupported: INVALID_REQUEST. The first transactional id
creates ``__transaction_state``, the first group ``__consumer_offsets``; the request is answered after the
creation. Kafka answers COORDINATOR_NOT_AVAILABLE at once instead, and clients sleep before they retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

_GROUP: Final = 0
_TRANSACTION: Final = 1
_TOPICS: Final = {_GROUP: "__consumer_offsets", _TRANSACTION: "__transaction_state"}


@serves("FindCoordinator")
def handle(broker: Broker, request: FindCoordinatorRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once, or after the creation of the coordinator's topic."""
    keys = request.coordinator_keys if version >= 4 else (request.key,)

    def answer(_: object = None) -> None:
        found = [_find(broker, request.key_type, key, peer, version) for key in keys]
        reply(_response(found, version))

    topic = _TOPICS.get(request.key_type)
    is_there = topic is None or all(_error(broker, request.key_type, key) == ErrorCode.NONE for key in keys)
    if topic is None or is_there or not broker.topics.when_created(topic, answer):
        answer()


def _response(found: list[Coordinator], version: int) -> FindCoordinatorResponse:
    if version >= 4:
        return FindCoordinatorResponse(coordinators=tuple(found))
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _find(broker: Broker, key_type: int, key: str, peer: Peer, version: int) -> Coordinator:
    error = _error(broker, key_type, key)
    is_here = error == ErrorCode.NONE
    return Coordinator(
        key=key,
        node_id=broker.node_id if is_here else -1,
        host=peer.node.host if is_here else "",
        port=peer.node.port if is_here else -1,
        error_code=error,
        error_message="" if is_here and version >= 4 else error.name,  # before 4 "NONE", as in Kafka
    )


def _error(broker: Broker, key_type: int, key: str) -> ErrorCode:
    if key_type == _GROUP:
        return broker.groups.find(key)
    return broker.transactions.find(key) if key_type == _TRANSACTION else ErrorCode.INVALID_REQUEST
