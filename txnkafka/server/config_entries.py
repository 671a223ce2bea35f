"""The settings of topics and of the broker as rows: name, value, type, and where the value comes from.

Source: ``ConfigHelper``, ``LogConfig.SERVER_CONFIG_DEF``, ``DescribeConfigsResponse.ConfigSource``.
"""

from __future__ import annotations

from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.broker.broker_config import BrokerConfig
from txnkafka.broker.config_names import TOPIC_SYNONYMS
from txnkafka.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ConfigEntry", "broker_entries", "topic_entries"]

_OF_TOPIC: Final = 1  # DescribeConfigsResponse.ConfigSource
_OF_BROKER: Final = 4
_DEFAULT: Final = 5
_TYPES: Final = {"bool": 1, "str": 2, "int": 5, "float": 6}  # ConfigType: BOOLEAN, STRING, LONG, DOUBLE
_INT: Final = 3
_LIST: Final = 7
_INT32_MAX: Final = 2**31 - 1
# Settings of a log that are the broker's in Kafka.
_NOT_OF_TOPICS: Final = frozenset(
    {"transaction_partition_verification_enable", "producer_id_expiration_ms", "max_idle_producers"}
)
_SYNONYM_OF: Final = {topic_name: name for name, (topic_name, _) in reversed(TOPIC_SYNONYMS.items())} | {
    "max.message.bytes": "message.max.bytes"
}
# Settings of the broker that have no default, because others stand for them: hours and minutes.
_WITHOUT_DEFAULT: Final = frozenset(
    {"log.roll.ms", "log.roll.jitter.ms", "log.flush.interval.ms", "log.retention.ms"}
)


class ConfigEntry(NamedTuple):
    """One setting. ``synonyms`` are name, value and source of what the value overrides, itself first."""

    name: str
    value: str
    source: int
    type: int
    doc: str | None
    synonyms: tuple[tuple[str, str, int], ...]


def topic_entries(broker: BrokerConfig, configs: Mapping[str, str]) -> list[ConfigEntry]:
    """All settings of a topic that has set ``configs``."""
    default, of_broker, own = LogConfig(), broker.log_config({}), broker.log_config(configs)
    entries = []
    for setting in fields(LogConfig):
        if setting.name in _NOT_OF_TOPICS:
            continue
        name = setting.name.replace("_", ".")
        synonym = _SYNONYM_OF.get(name, name)
        levels = [(synonym, _text(getattr(default, setting.name)), _DEFAULT)]
        _, value, source = levels[0]
        if synonym in _WITHOUT_DEFAULT:
            levels.clear()
        if getattr(of_broker, setting.name) != getattr(default, setting.name):
            levels.insert(0, (synonym, _text(getattr(of_broker, setting.name)), _OF_BROKER))
        if name in configs:
            levels.insert(0, (name, _text(getattr(own, setting.name)), _OF_TOPIC))
        kind = _LIST if name == "cleanup.policy" else _type(setting)
        if levels:
            _, value, source = levels[0]
        doc = setting.metadata.get("doc")
        entries.append(ConfigEntry(name, value, source, kind, doc, tuple(levels)))
    return entries


def broker_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """All settings of the broker."""
    entries = []
    for setting in fields(BrokerConfig):
        if setting.name == "topic_defaults":
            continue
        name = setting.name.replace("_", ".")
        value, default = _text(getattr(config, setting.name)), _text(setting.default)
        levels = [(name, default, _DEFAULT)]
        if value != default:
            levels.insert(0, (name, value, _OF_BROKER))
        entries.append(ConfigEntry(name, value, levels[0][2], _type(setting), None, tuple(levels)))
    return entries


def _type(setting: Field[Any]) -> int:
    is_int32 = setting.type == "int" and setting.metadata["high"] <= _INT32_MAX
    return _INT if is_int32 else _TYPES[str(setting.type)]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
