"""DescribeClientQuotas: quotas of users, clients and addresses (KIP-546).

Versions 0 to 1. This broker does not enforce quotas; it describes quotas that another broker has left in the
metadata log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

USER, CLIENT_ID, ADDRESS = "user", "client-id", "ip"
EXACT, DEFAULT, ANY = 0, 1, 2


@serves("DescribeClientQuotas")
def handle(
    broker: Broker, request: DescribeClientQuotasRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer at once."""
    refused = _refusal(request)
    if refused is not None:
        error, message = refused
        reply(DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None))
        return
    found: dict[tuple[tuple[str, str | None], ...], list[ValueData]] = {}
    for record in broker.image.kept.of("client_quota_record"):
        value = record.value or {}
        entity = tuple((part["entity_type"], part["entity_name"]) for part in value["entity"])
        if _matches(dict(entity), request):
            found.setdefault(entity, []).append(ValueData(key=value["key"], value=value["value"]))
    entries = tuple(
        EntryData(
            entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
            values=tuple(values),
        )
        for entity, values in found.items()
    )
    reply(DescribeClientQuotasResponse(entries=entries))


def _refusal(request: DescribeClientQuotasRequest) -> tuple[ErrorCode, str] | None:
    kinds = [component.entity_type for component in request.components]
    for component in request.components:
        kind, match_type = component.entity_type, component.match_type
        if not kind or kinds.count(kind) > 1:
            return ErrorCode.INVALID_REQUEST, f"the entity type {kind!r} is empty or named twice"
        if kind not in (USER, CLIENT_ID, ADDRESS):
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        if match_type not in (EXACT, DEFAULT, ANY) or (component.match is None) == (match_type == EXACT):
            return (
                ErrorCode.INVALID_REQUEST,
                f"match type {match_type} of {kind} is unknown, or does not fit its match",
            )
    if ADDRESS in kinds and len(kinds) > 1:
        return ErrorCode.INVALID_REQUEST, "the entity type ip cannot be combined with user or client-id"
    return None


def _matches(entity: dict[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    for component in request.components:
        if component.entity_type not in entity:
            return False
        if component.match_type != ANY and entity[component.entity_type] != component.match:
            return False
    return not request.strict or len(entity) == len(request.components)
