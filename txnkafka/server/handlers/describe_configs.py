"""DescribeConfigs: the settings of topics, this broker, groups and subscriptions to metrics of clients, with
the source of each value.

Versions 1 to 4. Synonyms, the same setting of the broker and its default, are given on request; from 3 on
also the documentation, and the type of each setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError
from txnkafka.model import validate_topic
from txnkafka.server.config_entries import (
    BROKER,
    GROUP,
    LOGGER,
    METRICS,
    TOPIC,
    advertised_entry,
    broker_entries,
    cluster_entries,
    group_entries,
    subscription_entries,
    topic_entries,
)
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.server.config_entries import ConfigEntry
    from txnkafka.server.peer import Peer, Reply

    Rows = tuple[DescribeConfigsResourceResult, ...]

MOST_ROWS: Final = 1 << 19  # 80 MiB with documentation; 10,000 topics have fewer
_ALIKE: Final = (TOPIC, GROUP, METRICS)  # their names have no effect on their settings


@serves("DescribeConfigs")
def handle(broker: Broker, request: DescribeConfigsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once; a resource that is named twice is described once, as the first one asks."""
    asked: dict[tuple[int, str], DescribeConfigsResource] = {}
    for each in request.resources:
        asked.setdefault((each.resource_type, each.resource_name), each)
    rows = _Rows(broker, request, peer)
    reply(DescribeConfigsResponse(results=tuple(map(rows.describe, asked.values()))))


class _Rows:
    """The settings of the resources of one request. Most topics and groups have set nothing, or the same, so
    equal rows are made once. An answer has at most ``MOST_ROWS``: any name is a valid group with configs, so
    a request could ask for a thousand times its own size."""

    def __init__(self, broker: Broker, request: DescribeConfigsRequest, peer: Peer) -> None:
        self._broker = broker
        self._request = request
        self._peer = peer
        self._made: dict[Hashable, Rows] = {}
        self._left = MOST_ROWS

    def describe(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        """Return the description of one resource."""
        kind, name = resource.resource_type, resource.resource_name
        error, message = _refusal(self._broker, kind, name)
        rows = self._all(kind, name) if error == ErrorCode.NONE else ()
        if resource.configuration_keys:
            keys = set(resource.configuration_keys)
            rows = tuple(row for row in rows if row.name in keys)
        if len(rows) > self._left:
            message = f"an answer has {MOST_ROWS} settings at most: ask for fewer resources at once"
            rows, error = (), ErrorCode.INVALID_REQUEST
        self._left -= len(rows)
        return DescribeConfigsResult(
            error_code=error, error_message=message, resource_type=kind, resource_name=name, configs=rows
        )

    def _all(self, kind: int, name: str) -> Rows:
        own = self._broker.image.configs.get((kind, name), {})
        key = kind, "" if kind in _ALIKE else name, tuple(own.items())
        if key not in self._made:
            entries = _entries(self._broker, kind, name, own, self._peer)
            self._made[key] = tuple(_result(each, self._request) for each in entries)
        return self._made[key]


def _refusal(broker: Broker, kind: int, name: str) -> tuple[ErrorCode, str]:
    """Return the refusal to describe a resource; NONE if it can be described."""
    if kind == TOPIC:
        return _refusal_of_topic(broker, name)
    if kind in (BROKER, LOGGER):
        is_here = name == str(broker.node_id) or (kind == BROKER and not name)
        message = f"this is broker {broker.node_id}, not {name}"
        return (ErrorCode.NONE, "") if is_here else (ErrorCode.INVALID_REQUEST, message)
    if kind not in (GROUP, METRICS):
        return ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}"
    return (ErrorCode.NONE, "") if name else (ErrorCode.INVALID_REQUEST, "the name must not be empty")


def _refusal_of_topic(broker: Broker, name: str) -> tuple[ErrorCode, str]:
    try:
        validate_topic(name)
    except InvalidTopicError as invalid:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, str(invalid)
    if name in broker.image.topics:
        return ErrorCode.NONE, ""
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist"


def _entries(broker: Broker, kind: int, name: str, own: Mapping[str, str], peer: Peer) -> list[ConfigEntry]:
    """Return the settings of a resource that has set ``own``."""
    configs = broker.configs
    if kind == TOPIC:
        return topic_entries(configs, own)
    if kind == GROUP:
        return group_entries(configs, own)
    if kind == METRICS:
        return subscription_entries(own)
    if kind == LOGGER:
        return []
    if not name:
        return cluster_entries(configs)
    return [*broker_entries(configs), advertised_entry(peer.node.endpoints)]


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in (entry.synonyms if request.include_synonyms else ())
        ),
        config_type=entry.type,
        documentation=entry.doc if request.include_documentation else None,
    )
