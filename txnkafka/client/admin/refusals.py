"""Errors of single topics, groups and transactional ids in responses: with the name, and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, error_for

if TYPE_CHECKING:
    from collections.abc import Mapping

K = TypeVar("K")
R = TypeVar("R")
_MOST_NOTES: Final = 10

_NEXT_STEPS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "describe_topics shows it",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "list_topics has the existing topics",
    ErrorCode.INVALID_REPLICATION_FACTOR: "describe_cluster has the number of brokers",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first, or remove them with remove_members",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the members that subscribe to the topic first",
    ErrorCode.GROUP_ID_NOT_FOUND: "list_groups has the existing groups",
    ErrorCode.UNKNOWN_MEMBER_ID: "while a group has members, only they commit offsets: stop them",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "list_transactions has the known ids; an unused id expires",
    ErrorCode.INVALID_PRODUCER_EPOCH: "describe_producers has the epochs that the partition knows",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "describe_producers has the coordinator epoch",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask the operator of the cluster for access",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask the operator of the cluster for access",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask the operator of the cluster for access",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask the operator of the cluster for access",
}


def refusal(code: int, where: str, message: str | None = None) -> KafkaError | None:
    """Return the error for a code in a response, None for no error. ``where`` names the topic, group or id;
    ``message`` is the broker's, if it sent one."""
    if code == ErrorCode.NONE:
        return None
    row = ErrorCode.of(code)
    text = row.name if not message or message == row.name else f"{message.rstrip('.')} ({row.name})"
    step = _NEXT_STEPS.get(row)
    return error_for(code, f"{where}: {text}" + (f"; {step}" if step else ""))


def checked(found: Mapping[K, R | KafkaError]) -> dict[K, R]:
    """Return results without errors. Raises the first error, with the others as its notes."""
    errors = [each for each in found.values() if isinstance(each, KafkaError)]
    if errors:
        first, *others = errors
        for other in others[:_MOST_NOTES]:
            first.add_note(f"another part of the call failed: {other}")
        if len(others) > _MOST_NOTES:
            first.add_note(f"{len(others) - _MOST_NOTES} more parts of the call failed")
        raise first
    results: dict[Any, Any] = dict(found)
    return results
