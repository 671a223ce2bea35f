"""Settings of topics, brokers and groups."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.client.admin.call import Call, Calls
from txnkafka.client.admin.refusals import refusal
from txnkafka.client.admin.route import CONFIG
from txnkafka.config import text_of
from txnkafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from txnkafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txnkafka.errors import KafkaError


class ConfigResourceType(enum.IntEnum):
    """The kinds of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic, broker or group with settings. The name of a broker is its node id, "" for all brokers."""

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name or '(default)'}"


class ConfigSource(enum.IntEnum):
    """The origin of a value (``DescribeConfigsResponse.ConfigSource``)."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        return cls.UNKNOWN


class ConfigSynonym(NamedTuple):
    """A setting that also determines a value, in order of precedence."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting. ``value`` is None where it is sensitive. ``type`` is Kafka's number of the type, 0 for
    unknown."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: int = 0
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_default(self) -> bool:
        """True if the value is the default, and not set anywhere."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class OpType(enum.IntEnum):
    """The kind of a change. APPEND and SUBTRACT change lists (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """A change of one setting."""

    name: str
    value: object = None
    op_type: OpType = OpType.SET


class ConfigCalls(Calls):
    """A part of ``AdminCore``."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Return the settings of resources by name, all or those in ``names``.

        Raises UnknownTopicOrPartitionError for a topic that does not exist."""
        keys = None if names is None else tuple(names)

        def request(asked: Sequence[ConfigResource], version: int) -> DescribeConfigsRequest:
            return DescribeConfigsRequest(
                resources=tuple(
                    DescribeConfigsResource(
                        resource_type=each.type, resource_name=each.name, configuration_keys=keys
                    )
                    for each in asked
                ),
                include_synonyms=include_synonyms,
                include_documentation=include_documentation and version >= 3,
            )

        return await self.results(Call("DescribeConfigs", CONFIG, "resource", request, _described), resources)

    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, object] | Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change settings of resources, and leave the others as they are (KIP-339): a mapping of names to
        new values, where None resets a setting to its default, or a list of ``AlterConfigOp``.

        Raises InvalidConfigError for a value or name that the broker refuses."""
        rows = {resource: tuple(map(_row, _operations(change))) for resource, change in changes.items()}

        def request(keys: Sequence[ConfigResource], version: int) -> IncrementalAlterConfigsRequest:
            return IncrementalAlterConfigsRequest(
                resources=tuple(
                    AlterConfigsResource(resource_type=each.type, resource_name=each.name, configs=rows[each])
                    for each in keys
                ),
                validate_only=validate_only,
            )

        await self.results(Call("IncrementalAlterConfigs", CONFIG, "resource", request, _altered), rows)


def _operations(change: Mapping[str, object] | Iterable[AlterConfigOp]) -> Iterable[AlterConfigOp]:
    if isinstance(change, Mapping):
        return [
            AlterConfigOp(name, value, OpType.DELETE if value is None else OpType.SET)
            for name, value in change.items()
        ]
    return change


def _row(change: AlterConfigOp) -> AlterableConfig:
    value = None if change.value is None else text_of(change.value)
    return AlterableConfig(name=change.name, config_operation=change.op_type, value=value)


def _described(
    response: Any, keys: Sequence[ConfigResource]
) -> Iterator[tuple[ConfigResource, dict[str, ConfigEntry] | KafkaError]]:
    for each in response.results:
        key = ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
        error = refusal(each.error_code, str(key), each.error_message)
        yield key, error or {row.name: _entry(row) for row in each.configs}


def _entry(row: Any) -> ConfigEntry:
    synonyms = tuple(ConfigSynonym(each.name, each.value, ConfigSource(each.source)) for each in row.synonyms)
    return ConfigEntry(
        row.name,
        row.value,
        ConfigSource(row.config_source),
        row.read_only,
        row.is_sensitive,
        row.config_type,
        row.documentation,
        synonyms,
    )


def _altered(
    response: Any, keys: Sequence[ConfigResource]
) -> Iterator[tuple[ConfigResource, KafkaError | None]]:
    for each in response.responses:
        key = ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
        yield key, refusal(each.error_code, str(key), each.error_message)
