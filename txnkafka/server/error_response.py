"""Build a response that marks every element of a request as failed.

The elements of the response repeat the identities in the request; all other fields have their defaults.
Source: ``AbstractRequest.getErrorResponse``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.wire.fields import ArrayOf, fields_of, replaced

if TYPE_CHECKING:
    from txnkafka.error_codes import ErrorCode
    from txnkafka.wire.messages.apis import Api

_ERRORS: Final = ("error_code", "partition_error_code")
_ELEMENTS: Final = {  # array of a response: arrays of requests that it answers
    "coordinators": ("coordinator_keys",),
    "entries": ("entries",),
    "filter_results": ("filters",),
    "groups": ("groups", "group_ids"),
    "markers": ("markers",),
    "partition_responses": ("partition_data",),
    "partition_result": ("partitions",),
    "partitions": ("partitions", "partition_indexes"),
    "replica_election_results": ("topic_partitions",),
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "results": ("resources", "groups_names", "topics", "creations"),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "topics": ("topics",),
    "transaction_states": ("transactional_ids",),
}
_IDENTITIES: Final = {  # field of a response: fields of requests that it repeats
    "group_id": ("group_id",),
    "index": ("index",),
    "key": (),
    "name": ("name",),
    "partition": ("partition",),
    "partition_id": (),
    "partition_index": ("partition_index", "partition"),
    "producer_id": ("producer_id",),
    "resource_name": ("resource_name",),
    "resource_type": ("resource_type",),
    "topic": ("topic",),
    "topic_id": ("topic_id",),
    "topic_name": ("name",),
    "transactional_id": ("transactional_id",),
}


def error_response(api: Api, version: int, request: Any, error: ErrorCode) -> Any:
    """Return the response to a request; None for a Produce request with acks 0."""
    if getattr(request, "acks", -1) == 0:
        return None
    directories = getattr(request, "dirs", ())
    if directories:  # AlterReplicaLogDirs is answered by topic
        topics = tuple(topic for directory in directories for topic in directory.topics)
        request = replaced(directories[0], topics=topics)
    return _failed(api.response, version, request, error)


def _failed(cls: Any, version: int, asked: Any, error: ErrorCode) -> Any:
    """Return the message or struct that answers ``asked``, which is a struct or an identity."""
    values: dict[str, Any] = {}
    for field in fields_of(cls):
        if not field.is_in(version):
            continue
        if field.name in _ERRORS:
            values[field.name] = error
        elif isinstance(field.schema.type, ArrayOf):
            elements = _first(asked, _ELEMENTS.get(field.name, ()))
            if isinstance(field.schema.type.element, type) and elements is not None:
                element = field.schema.type.element
                values[field.name] = tuple(_failed(element, version, each, error) for each in elements)
        elif field.name in _IDENTITIES:
            value = _first(asked, _IDENTITIES[field.name])
            if value is None and isinstance(asked, str | int) and isinstance(asked, type(field.default)):
                value = asked
            if value is not None:
                values[field.name] = value
    return cls(**values)


def _first(asked: Any, names: tuple[str, ...]) -> Any:
    """Return the value of the first named field that exists and is not empty."""
    found = (getattr(asked, name, None) for name in names)
    return next((value for value in found if value not in (None, ())), None)
