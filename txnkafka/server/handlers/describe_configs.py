"""DescribeConfigs: the settings of topics, this broker, groups and subscriptions to metrics of clients, each
with where its value comes from.

Versions 1 to 4. Synonyms, the same setting of the broker and its default, are given on request; from 3 on
so is the documentation, and there is a type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError
from txnkafka.model import validate_topic
from txnkafka.server.config_entries import (
    advertised_entry,
    broker_entries,
    cluster_entries,
    topic_entries,
)
from txnkafka.server.config_resources import BROKER, GROUP, LOGGER, METRICS, TOPIC
from txnkafka.server.group_entries import group_entries, subscription_entries
from txnkafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.config_entries import ConfigEntry
    from txnkafka.server.context import Context, Reply

__all__ = ["handle"]


def handle(
    broker: Broker, request: DescribeConfigsRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer at once; a resource that is named twice is described once, as the first one asks."""
    results = []
    asked: dict[tuple[int, str], DescribeConfigsResource] = {}
    for each in request.resources:
        asked.setdefault((each.resource_type, each.resource_name), each)
    for resource in asked.values():
        entries, error, message = _entries(broker, resource, context)
        keys = resource.configuration_keys
        results.append(
            DescribeConfigsResult(
                error_code=error,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=tuple(
                    _result(each, request) for each in entries if not keys or each.name in keys
                ),
            )
        )
    reply(DescribeConfigsResponse(results=tuple(results)))


def _entries(
    broker: Broker, resource: DescribeConfigsResource, context: Context
) -> tuple[list[ConfigEntry], ErrorCode, str]:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC:
        return _of_topic(broker, name)
    if kind == BROKER and name == "":
        return cluster_entries(broker.configs), ErrorCode.NONE, ""
    if kind in (BROKER, LOGGER):
        if name != str(broker.node_id):
            return [], ErrorCode.INVALID_REQUEST, f"this is broker {broker.node_id}, not {name}"
        if kind == LOGGER:
            return [], ErrorCode.NONE, ""
        advertised = advertised_entry(context.node.host, context.node.port)
        return [*broker_entries(broker.configs), advertised], ErrorCode.NONE, ""
    if kind in (GROUP, METRICS) and not name:
        return [], ErrorCode.INVALID_REQUEST, "the name must not be empty"
    own = broker.image.configs.get((kind, name), {})
    if kind == GROUP:
        return group_entries(broker.configs, own), ErrorCode.NONE, ""
    if kind == METRICS:
        return subscription_entries(own), ErrorCode.NONE, ""
    return [], ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}"


def _of_topic(broker: Broker, name: str) -> tuple[list[ConfigEntry], ErrorCode, str]:
    try:
        validate_topic(name)
    except InvalidTopicError as invalid:
        return [], ErrorCode.INVALID_TOPIC_EXCEPTION, str(invalid)
    if name in broker.image.topics:
        return topic_entries(broker.configs, broker.image.topic_configs(name)), ErrorCode.NONE, ""
    return [], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}"


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
