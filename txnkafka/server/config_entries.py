"""The settings of topics and of the broker as rows: name, value, type, and where the value comes from.

Source: ``ConfigHelper``, ``LogConfig.SERVER_CONFIG_DEF``, ``DescribeConfigsResponse.ConfigSource``.
"""

from __future__ import annotations

from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.broker.broker_config import NOT_OF_TOPICS, BrokerConfig
from txnkafka.broker.config_names import DYNAMIC, DYNAMIC_WITHOUT_EFFECT, TOPIC_SYNONYMS
from txnkafka.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txnkafka.broker.configs import Configs
    from txnkafka.server.listeners import Endpoint

__all__ = [
    "BOOLEAN", "DEFAULT", "INT", "LIST", "LONG", "STRING", "ConfigEntry", "Levels",
    "advertised_entry", "broker_entries", "cluster_entries", "topic_entries",
]  # fmt: skip

_OF_TOPIC: Final = 1  # DescribeConfigsResponse.ConfigSource
_OF_NODE: Final = 2
_OF_CLUSTER: Final = 3
_STATIC: Final = 4
DEFAULT: Final = 5
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7  # ConfigType
_TYPES: Final = {"bool": BOOLEAN, "str": STRING, "int": LONG, "float": DOUBLE}
_INT32_MAX: Final = 2**31 - 1
_SYNONYM_OF: Final = {
    **{topic_name: name for name, (topic_name, _) in reversed(TOPIC_SYNONYMS.items())},
    **{name: name for name in DYNAMIC_WITHOUT_EFFECT},
    "local.retention.ms": "log.local.retention.ms",
    "local.retention.bytes": "log.local.retention.bytes",
    "remote.copy.lag.ms": "log.remote.copy.lag.ms",
    "remote.copy.lag.bytes": "log.remote.copy.lag.bytes",
    "max.decompressed.message.bytes": "max.decompressed.message.bytes",
    "max.message.bytes": "message.max.bytes",
}
_OF_BROKERS_ELSEWHERE: Final = (  # settings of a broker, too, which this one does not have
    "local.retention.ms", "local.retention.bytes", "remote.copy.lag.ms", "remote.copy.lag.bytes",
    "max.decompressed.message.bytes",
)  # fmt: skip
# Settings that stand for each other, the one that wins first (DynamicBrokerConfig.brokerConfigSynonyms).
_GROUPS: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)
# Settings of the broker that have no default, because others stand for them: hours and minutes.
_WITHOUT_DEFAULT: Final = frozenset(
    {
        "log.roll.ms", "log.roll.jitter.ms", "log.flush.interval.ms", "log.retention.ms",
        "log.retention.minutes",
    }
)  # fmt: skip
_INTERNAL: Final = ("group_consumer_regex_refresh_interval_ms",)  # which Kafka does not show
_OTHERS: Final = {  # settings that mean something elsewhere: default, type, documentation
    "min.insync.replicas": ("1", INT, "replicas that must have a record; here there is one"),
    "unclean.leader.election.enable": ("false", BOOLEAN, "whether a replica may lead that lacks records"),
    "leader.replication.throttled.replicas": ("", LIST, "replicas that are sent slowly"),
    "follower.replication.throttled.replicas": ("", LIST, "replicas that are fetched slowly"),
    "remote.storage.enable": ("false", BOOLEAN, "tiered storage, which there is not"),
    "remote.log.copy.disable": ("false", BOOLEAN, "whether nothing more goes to tiered storage"),
    "remote.log.delete.on.disable": ("false", BOOLEAN, "whether tiered storage is emptied when it ends"),
    "local.retention.ms": ("-2", LONG, "age of what tiered storage has, too"),
    "local.retention.bytes": ("-2", LONG, "size of what tiered storage has, too"),
    "remote.copy.lag.ms": ("0", LONG, "age at which tiered storage gets a segment; -1: as late as possible"),
    "remote.copy.lag.bytes": ("-1", LONG, "bytes after which tiered storage gets a segment"),
    "max.decompressed.message.bytes": ("2147483639", INT, "largest record when decompressed"),
    "errors.deadletterqueue.group.enable": ("false", BOOLEAN, "whether share groups may write here"),
}


class ConfigEntry(NamedTuple):
    """One setting. ``synonyms`` are name, value and source of what the value overrides, itself first."""

    name: str
    value: str | None
    source: int
    type: int
    doc: str | None
    is_read_only: bool
    synonyms: tuple[tuple[str, str, int], ...]


def topic_entries(configs: Configs, own: Mapping[str, str]) -> list[ConfigEntry]:
    """All settings of a topic that has set ``own``."""
    faults, levels = configs.current.faults(own), Levels(configs)
    own = {name: own[name] for name in own.keys() - faults.keys()}
    current = configs.current.log_config(own)
    rows = [
        (setting.name.replace("_", "."), _text(getattr(current, setting.name)), _kind_of_topic(setting),
         setting.metadata.get("doc"))
        for setting in fields(LogConfig)
    ]  # fmt: skip
    rows += [
        (name, own.get(name, levels.value(name, default) or default), kind, doc)
        for name, (default, kind, doc) in _OTHERS.items()
    ]
    entries = []
    for name, value, kind, doc in rows:
        of_broker = levels.synonyms(_SYNONYM_OF[name]) if name in _SYNONYM_OF else ()
        synonyms = ((name, value, _OF_TOPIC), *of_broker) if name in own else of_broker
        source = synonyms[0][2] if synonyms else DEFAULT
        entries.append(ConfigEntry(name, value, source, kind, doc, False, synonyms))
    return [entry for entry in entries if entry.name not in NOT_OF_TOPICS]


def broker_entries(configs: Configs) -> list[ConfigEntry]:
    """All settings of the broker."""
    levels = Levels(configs)
    entries = []
    current = {
        setting.name.replace("_", "."): _text(getattr(configs.current, setting.name))
        for setting in _settings_of_broker()
    }
    for name, (default, kind) in _BROKER_SETTINGS.items():
        synonyms = levels.synonyms(name)
        source = synonyms[0][2] if synonyms else DEFAULT
        value = current.get(name) or levels.value(name, default)
        entries.append(ConfigEntry(name, value, source, kind, None, _is_read_only(name), synonyms))
    return entries


def advertised_entry(endpoints: Iterable[Endpoint]) -> ConfigEntry:
    """The addresses that clients get, one for each listener."""
    name, value = "advertised.listeners", ",".join(map(str, endpoints))
    return ConfigEntry(name, value, _STATIC, LIST, None, True, ((name, value, _STATIC),))


def cluster_entries(configs: Configs) -> list[ConfigEntry]:
    """The settings that the registry has for all brokers."""
    return [
        ConfigEntry(
            name, value, _OF_CLUSTER, _BROKER_SETTINGS.get(name, ("", 0))[1], None, _is_read_only(name),
            ((name, value, _OF_CLUSTER),),
        )
        for name, value in configs.of_cluster.items()
    ]  # fmt: skip


class Levels:
    """Where settings of the broker are, the level that wins first."""

    def __init__(self, configs: Configs) -> None:
        known = {name: text for name, (text, _) in _BROKER_SETTINGS.items() if text is not None}
        defaults = known | {_SYNONYM_OF[name]: _OTHERS[name][0] for name in _OF_BROKERS_ELSEWHERE}
        self._levels: tuple[tuple[Mapping[str, str], int], ...] = (
            (configs.of_node, _OF_NODE),
            (configs.of_cluster, _OF_CLUSTER),
            (_given(configs.static), _STATIC),
            (defaults, DEFAULT),
        )

    def synonyms(self, name: str) -> tuple[tuple[str, str, int], ...]:
        """All that say what the setting is; those before the first of its own name are left out."""
        names = next((group for group in _GROUPS if name in group), (name,))
        found = [
            (each, level[each].strip(), source)
            for level, source in self._levels
            for each in names
            if each in level
        ]
        own = [i for i, (each, *_) in enumerate(found) if each == name]
        return tuple(found[own[0] :]) if own else ()

    def value(self, name: str, default: str | None) -> str | None:
        """What the setting says by its own name: the default where a level above has it by another one."""
        names = next((group for group in _GROUPS if name in group), (name,))
        for level, _ in self._levels[:-1]:
            if name in level:
                return level[name].strip()
            if level is not self._levels[2][0] and any(each in level for each in names):
                break
        return default


def _given(config: BrokerConfig) -> Mapping[str, str]:
    """The texts that the settings of the start were made of."""
    if config.given:
        return config.given
    found = {_SYNONYM_OF[name]: text for name, text in config.topic_defaults.items()}
    for setting in _settings_of_broker():
        value = getattr(config, setting.name)
        if value != setting.default:
            found[setting.name.replace("_", ".")] = _text(value)
    return found


def _settings_of_broker() -> Iterator[Field[Any]]:
    hidden = ("topic_defaults", "given", *_INTERNAL)
    return (each for each in fields(BrokerConfig) if each.name not in hidden)


def _is_read_only(name: str) -> bool:
    return name not in DYNAMIC | DYNAMIC_WITHOUT_EFFECT


def _all_of_broker() -> dict[str, tuple[str | None, int]]:
    """Default and type by name: those of the broker itself, and those that are defaults of topics."""
    found: dict[str, tuple[str | None, int]] = {
        setting.name.replace("_", "."): (_text(setting.default), _kind(setting))
        for setting in _settings_of_broker()
    }
    of_logs = {setting.name.replace("_", "."): setting for setting in fields(LogConfig)}
    for name, (topic_name, unit) in TOPIC_SYNONYMS.items():
        setting = of_logs[topic_name]
        default: Any = setting.default
        kind = _kind_of_topic(setting)
        if unit > 1:  # hours and minutes
            default, kind = default // unit, INT
        found[name] = None if name in _WITHOUT_DEFAULT else _text(default), kind
    return found | {name: _OTHERS[name][:2] for name in sorted(DYNAMIC_WITHOUT_EFFECT)}


def _kind_of_topic(setting: Field[Any]) -> int:
    return LIST if setting.name == "cleanup_policy" else _kind(setting)


def _kind(setting: Field[Any]) -> int:
    if setting.name == "group_consumer_assignors":
        return LIST
    limits = setting.metadata
    is_int32 = setting.type == "int" and limits.get("text_high", limits["high"]) <= _INT32_MAX
    return INT if is_int32 else _TYPES[str(setting.type)]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_BROKER_SETTINGS: Final = _all_of_broker()
