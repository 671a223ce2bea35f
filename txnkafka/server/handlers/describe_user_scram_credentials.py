"""DescribeUserScramCredentials: the SCRAM mechanisms and iterations of users (KIP-554).

Version 0. This broker does not authenticate clients; it describes credentials that another broker has left in
the metadata log.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("DescribeUserScramCredentials")
def handle(
    broker: Broker, request: DescribeUserScramCredentialsRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer at once."""
    known: dict[str, list[CredentialInfo]] = {}
    for record in broker.image.kept.of("user_scram_credential_record"):
        value = record.value or {}
        info = CredentialInfo(mechanism=value["mechanism"], iterations=value["iterations"])
        known.setdefault(value["name"], []).append(info)
    counts = Counter(user.name for user in request.users or ()) or Counter(iter(known))
    results = tuple(_result(name, counts[name], known.get(name, [])) for name in counts)
    reply(DescribeUserScramCredentialsResponse(results=results))


def _result(name: str, count: int, credentials: list[CredentialInfo]) -> DescribeUserScramCredentialsResult:
    error, message = ErrorCode.NONE, None
    if count > 1:
        error, message = ErrorCode.DUPLICATE_RESOURCE, f"the user {name} is named more than once"
    elif not credentials:
        error, message = ErrorCode.RESOURCE_NOT_FOUND, f"the user {name} has no SCRAM credentials"
    infos = () if error != ErrorCode.NONE else tuple(credentials)
    return DescribeUserScramCredentialsResult(
        user=name, error_code=error, error_message=message, credential_infos=infos
    )
