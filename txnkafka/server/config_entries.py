"""The settings of topics, brokers, groups and subscriptions as DescribeConfigs has them: value, type, and
where the value comes from.

Source: ``ConfigHelper``, ``LogConfig.SERVER_CONFIG_DEF``, ``DescribeConfigsResponse.ConfigSource``,
``DynamicBrokerConfig.brokerConfigSynonyms``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.config.broker_config import BROKER_DEFS, TOPIC_DEFS
from txnkafka.broker.config.client_metrics import SUBSCRIPTION_DEFS, shown_subscription
from txnkafka.broker.config.config_names import TOPIC_SYNONYMS, TOPIC_WITHOUT_EFFECT
from txnkafka.broker.config.group_settings import GROUP_DEFS, shown_group_config
from txnkafka.config import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.broker.config.broker_config import BrokerConfig
    from txnkafka.broker.config.configs import Configs
    from txnkafka.config import ConfigDef
    from txnkafka.server.listeners import Endpoint

    Synonyms = tuple[tuple[str, str, int], ...]

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32  # ConfigResource.Type
_OF_TOPIC, _OF_NODE, _OF_CLUSTER, _STATIC, _DEFAULT = 1, 2, 3, 4, 5  # DescribeConfigsResponse.ConfigSource
_OF_SUBSCRIPTION, _OF_GROUP = 7, 8
_TYPES: Final = {"boolean": 1, "string": 2, "int": 3, "long": 5, "double": 6, "list": 7}  # ConfigType
_ALIKE: Final = {name: spec.broker for spec in TOPIC_DEFS.values() for name in spec.broker}
"""Names of the broker for one setting, in order of precedence."""
_BROKER_DEFAULTS: Final = {
    **{spec.broker[0]: spec.default or "" for spec in TOPIC_WITHOUT_EFFECT.values() if spec.broker},
    **{name: spec.default for name, spec in BROKER_DEFS.items() if spec.default is not None},
}
_MESSAGE_BYTES: Final = "message.max.bytes"  # which a topic has as max.message.bytes


class ConfigEntry(NamedTuple):
    """One setting. ``synonyms`` has name, value and source of this setting and the ones it overrides."""

    name: str
    value: str | None
    source: int
    type: int
    doc: str | None
    is_read_only: bool
    synonyms: Synonyms


def _entry(
    spec: ConfigDef, value: str | None, synonyms: Synonyms, doc: str | None, *, is_read_only: bool = False
) -> ConfigEntry:
    source = synonyms[0][2] if synonyms else _DEFAULT
    return ConfigEntry(spec.name, value, source, _TYPES[spec.kind], doc, is_read_only, synonyms)


def topic_entries(configs: Configs, own: Mapping[str, str]) -> list[ConfigEntry]:
    """Return all settings of a topic that has set ``own``."""
    faults, levels = configs.current.faults(own), _Levels(configs)
    own = {name: own[name] for name in own.keys() - faults.keys()}
    current, entries = configs.current.log_config(own), []
    for name, spec in TOPIC_DEFS.items():
        if spec.is_internal:
            continue
        broker = spec.broker or ((_MESSAGE_BYTES,) if name == "max.message.bytes" else ())
        if name in TOPIC_WITHOUT_EFFECT:
            value = own.get(name, levels.value(name, spec.default) or spec.default)
        else:
            value = text_of(getattr(current, name.replace(".", "_")))
        synonyms = levels.synonyms(broker[0]) if broker else ()
        if name in own:
            synonyms = ((name, value or "", _OF_TOPIC), *synonyms)
        entries.append(_entry(spec, value, synonyms, spec.doc))
    return entries


def broker_entries(configs: Configs) -> list[ConfigEntry]:
    """Return all settings of the broker."""
    levels, current, entries = _Levels(configs), configs.current, []
    for name, spec in BROKER_DEFS.items():
        if not spec.is_internal:
            value = getattr(current, name.replace(".", "_"), None)
            shown = levels.value(name, spec.default) if value is None else text_of(value)
            entries.append(_entry(spec, shown, levels.synonyms(name), None, is_read_only=not spec.is_dynamic))
    return entries


def advertised_entry(endpoints: Iterable[Endpoint]) -> ConfigEntry:
    """Return the addresses that clients get, one for each listener."""
    name, value = "advertised.listeners", ",".join(map(str, endpoints))
    return ConfigEntry(name, value, _STATIC, _TYPES["list"], None, True, ((name, value, _STATIC),))


def cluster_entries(configs: Configs) -> list[ConfigEntry]:
    """Return the settings that the registry has for all brokers."""
    entries = []
    for name, value in configs.of_cluster.items():
        spec = BROKER_DEFS.get(name)
        kind, is_read_only = (_TYPES[spec.kind], not spec.is_dynamic) if spec else (0, True)
        synonyms = ((name, value, _OF_CLUSTER),)
        entries.append(ConfigEntry(name, value, _OF_CLUSTER, kind, None, is_read_only, synonyms))
    return entries


def group_entries(configs: Configs, own: Mapping[str, str]) -> list[ConfigEntry]:
    """Return the configs of a group that has set ``own``: all but the internal ones that are not set."""
    levels, limits, entries = _Levels(configs), configs.current.group_limits, []
    for name, spec in GROUP_DEFS.items():
        if spec.is_internal and name not in own:
            continue
        value = str(limits[name][1]) if name in limits else spec.default or ""
        broker = spec.broker[0] if spec.broker else name
        # settings of groups that are not served have their default
        synonyms = levels.synonyms(broker) or ((broker, spec.default or "", _DEFAULT),)
        if name in own:
            value = shown_group_config(name, own[name])
            synonyms = ((name, value, _OF_GROUP), *synonyms)
        entries.append(_entry(spec, value, synonyms, spec.doc))
    return entries


def subscription_entries(own: Mapping[str, str]) -> list[ConfigEntry]:
    """Return all configs of a subscription that has set ``own``."""
    entries = []
    for name, spec in SUBSCRIPTION_DEFS.items():
        value = shown_subscription(name, own.get(name, spec.default or ""))
        synonyms = ((name, value, _OF_SUBSCRIPTION),) if name in own else ()
        entries.append(_entry(spec, value, synonyms, spec.doc))
    return entries


class _Levels:
    """The levels of broker settings, in order of precedence."""

    def __init__(self, configs: Configs) -> None:
        self._levels: tuple[tuple[Mapping[str, str], int], ...] = (
            (configs.of_node, _OF_NODE),
            (configs.of_cluster, _OF_CLUSTER),
            (_given(configs.static), _STATIC),
            (_BROKER_DEFAULTS, _DEFAULT),
        )

    def synonyms(self, name: str) -> Synonyms:
        """Return the values that determine the setting, from the first value under its own name on."""
        names = _ALIKE.get(name, (name,))
        found = [
            (synonym, level[synonym].strip(), source)
            for level, source in self._levels
            for synonym in names
            if synonym in level
        ]
        own = [i for i, (synonym, *_) in enumerate(found) if synonym == name]
        return tuple(found[own[0] :]) if own else ()

    def value(self, name: str, default: str | None) -> str | None:
        """Return the value under the setting's own name; its default if a level above has another name."""
        for level, source in self._levels[:-1]:
            if name in level:
                return level[name].strip()
            if source != _STATIC and any(synonym in level for synonym in _ALIKE.get(name, ())):
                break
        return default


def _given(config: BrokerConfig) -> Mapping[str, str]:
    """Return the texts that the settings of the start were made of."""
    if config.given:
        return config.given
    names = {topic_name: name for name, (topic_name, _) in reversed(TOPIC_SYNONYMS.items())}
    found = {  # internal.segment.bytes, for tests, is not a setting of the server
        names[topic_name]: text for topic_name, text in config.topic_defaults.items() if topic_name in names
    }
    for name, spec in BROKER_DEFS.items():
        value = getattr(config, name.replace(".", "_"), None)
        if value is not None and text_of(value) != spec.default and not spec.is_internal:
            found[name] = text_of(value)
    return found
