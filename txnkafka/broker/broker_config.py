"""``BrokerConfig``: the settings of a broker, with Apache Kafka's names and defaults.

Source: ``KafkaConfig``, ``TransactionLogConfig``, ``TransactionStateManagerConfig``, ``ServerLogConfigs``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from re import fullmatch
from typing import Any, Final

from txnkafka.broker.config_names import TOPIC_SYNONYMS, WITHOUT_EFFECT, contradiction, refusal
from txnkafka.broker.group_settings import check_groups
from txnkafka.config import LogConfig

__all__ = [
    "LEAST_SEGMENT",
    "MOST_PARTITIONS",
    "NOT_OF_TOPICS",
    "BrokerConfig",
    "check_topic",
    "is_topic_config",
]

LOG = logging.getLogger("txnkafka.broker")

MOST_PARTITIONS: Final = 10_000
"""That are created at once (``ReplicationControlManager.MAX_PARTITIONS_PER_BATCH``), by a request or for a
coordinator."""
_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1


def _number(default: float, low: float, high: float = _INT32_MAX) -> Any:
    return field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """Field names are Kafka's with underscores; times in milliseconds, sizes in bytes. ``topic_defaults`` are
    the settings of topics that do not set them, by Kafka's names of topic configs; ``given`` is what the
    settings were made of, by the names of the broker.

    Raises ValueError for a value that Kafka would refuse, or with which a coordinator would have no topic.
    """

    num_partitions: int = _number(1, 1)
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    transaction_state_log_num_partitions: int = _number(50, 1, MOST_PARTITIONS)
    transaction_state_log_segment_bytes: int = _number(104_857_600, 1)
    offsets_topic_num_partitions: int = _number(50, 1, MOST_PARTITIONS)
    offsets_topic_segment_bytes: int = _number(104_857_600, 1)
    offset_metadata_max_bytes: int = _number(4_096, 0)
    offsets_retention_minutes: int = _number(10_080, 1)
    offsets_retention_check_interval_ms: int = _number(600_000, 1, _INT64_MAX)
    group_initial_rebalance_delay_ms: int = _number(3_000, 0)
    group_min_session_timeout_ms: int = _number(6_000, 0)
    group_max_session_timeout_ms: int = _number(1_800_000, 0)
    group_max_size: int = _number(_INT32_MAX, 1)
    group_consumer_session_timeout_ms: int = _number(45_000, 1)
    group_consumer_min_session_timeout_ms: int = _number(45_000, 1)
    group_consumer_max_session_timeout_ms: int = _number(60_000, 1)
    group_consumer_heartbeat_interval_ms: int = _number(5_000, 1)
    group_consumer_min_heartbeat_interval_ms: int = _number(5_000, 1)
    group_consumer_max_heartbeat_interval_ms: int = _number(15_000, 1)
    group_consumer_assignment_interval_ms: int = _number(1_000, 0)
    group_consumer_min_assignment_interval_ms: int = _number(0, 0)
    group_consumer_max_assignment_interval_ms: int = _number(15_000, 0)
    group_consumer_regex_refresh_interval_ms: int = _number(600_000, 10_000)
    group_consumer_max_size: int = _number(_INT32_MAX, 1)
    group_consumer_assignors: str = "uniform,range"
    group_consumer_migration_policy: str = "bidirectional"
    transaction_max_timeout_ms: int = _number(900_000, 1)
    transactional_id_expiration_ms: int = _number(604_800_000, 1)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = _number(10_000, 1)
    transaction_remove_expired_transaction_cleanup_interval_ms: int = _number(3_600_000, 1)
    message_max_bytes: int = _number(1_048_588, 0)
    fetch_max_bytes: int = _number(57_671_680, 1024)
    socket_request_max_bytes: int = _number(104_857_600, 1)
    max_connections: int = _number(_INT32_MAX, 0)
    max_connections_per_ip: int = _number(_INT32_MAX, 1)  # there are no overrides of it
    connections_max_idle_ms: int = _number(600_000, -1, _INT64_MAX)
    max_incremental_fetch_session_cache_slots: int = _number(1000, 0)
    log_retention_check_interval_ms: int = _number(300_000, 1, _INT64_MAX)
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = _number(15_000, 0, _INT64_MAX)
    log_cleaner_dedupe_buffer_size: int = _number(134_217_728, (1 << 20) + 1, _INT64_MAX)
    log_cleaner_io_buffer_load_factor: float = _number(0.9, 0.01, 1)
    metadata_log_max_record_bytes_between_snapshots: int = _number(20_971_520, 1, _INT64_MAX)
    metadata_log_max_snapshot_interval_ms: int = _number(3_600_000, 0, _INT64_MAX)
    metadata_max_retention_bytes: int = _number(104_857_600, -1, _INT64_MAX)
    metadata_max_retention_ms: int = _number(604_800_000, -1, _INT64_MAX)
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for setting in fields(self):
            low, value = setting.metadata.get("low"), getattr(self, setting.name)
            if low is not None and not low <= value <= setting.metadata["high"]:
                shown = setting.name.replace("_", ".")
                raise ValueError(f"{shown} must be {low} to {setting.metadata['high']}, not {value}")
        check_groups(self)
        _check_lags(LogConfig.of(self.topic_defaults), "log.cleaner.")

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> BrokerConfig:
        """Parse Kafka's names and texts, as ``server.properties`` has them. A setting that means nothing to a
        broker of one node is logged and ignored. Raises ValueError for an unknown name, for one that asks for
        what there is not here, and for a bad value."""
        for reason in cls.refusals(configs).values():
            raise ValueError(reason)
        unused = ", ".join(f"{name}={text}" for name, text in configs.items() if name in WITHOUT_EFFECT)
        if unused:
            LOG.warning("settings without effect on one node: %s", unused)
        found, defaults = cls._parsed(configs)
        return cls(topic_defaults=defaults, given=dict(configs), **found)

    def changed(self, configs: Mapping[str, str]) -> BrokerConfig:
        """Return these settings with others over them, which ``refusals`` does not have. Raises ValueError
        for a bad value."""
        found, defaults = self._parsed(configs)
        return replace(self, topic_defaults={**self.topic_defaults, **defaults}, **found)

    @classmethod
    def kinds(cls) -> dict[str, str]:
        """Return the type of each setting, by Kafka's name; topics' settings are in ``TOPIC_SYNONYMS``."""
        kinds = {setting.name.replace("_", "."): str(setting.type) for setting in fields(cls)}
        del kinds["topic.defaults"], kinds["given"]
        return kinds

    @classmethod
    def refusals(cls, configs: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that a broker of one node cannot have, each with the reason; bad values are not
        among them."""
        kinds, found = cls.kinds(), {}
        for name, text in configs.items():
            if name in WITHOUT_EFFECT:
                found[name] = contradiction(name, text)
            elif name not in kinds and name not in TOPIC_SYNONYMS:
                found[name] = refusal(name, kinds)
        return {name: reason for name, reason in found.items() if reason}

    @classmethod
    def _parsed(cls, configs: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the broker's values by field, and the topics' values."""
        kinds = cls.kinds()
        found: dict[str, Any] = {}
        for name, text in configs.items():
            if name in kinds:
                found[name.replace(".", "_")] = _parsed(name, text, kinds[name])
        defaults: dict[str, str] = {}
        for name, (topic_name, unit) in TOPIC_SYNONYMS.items():
            if name in configs:
                text = _scaled(name, configs[name], unit)
                if topic_name not in defaults:  # only the first counts, and is checked
                    _check_default(name, topic_name, text)
                    defaults[topic_name] = text
        return found, defaults

    def log_config(self, configs: Mapping[str, str]) -> LogConfig:
        """The settings of a topic that has set ``configs``. Raises ValueError."""
        defaults = {"max.message.bytes": str(self.message_max_bytes), **self.topic_defaults}
        with_effect = {name: text for name, text in configs.items() if name not in _WITHOUT_EFFECT}
        return LogConfig.of({**defaults, **with_effect})

    def faults(self, configs: Mapping[str, str]) -> dict[str, str]:
        """What is not understood of the configs of a topic, which another broker may have created, and why:
        a topic that is there is served without it."""
        if not self._fault(configs):  # nearly always
            return {}
        found = {name: self._fault({name: text}) for name, text in configs.items()}
        return {name: fault for name, fault in found.items() if fault}

    def _fault(self, configs: Mapping[str, str]) -> str:
        try:
            self.log_config(configs)
        except ValueError as error:
            return str(error)
        return ""


def _check_default(name: str, topic_name: str, text: str) -> None:
    """What the broker's setting may not be where the topic's may."""
    if topic_name == "retention.ms" and int(text) == 0:
        raise ValueError(f"{name} must be at least 1, or negative: without a limit")
    if topic_name == "segment.bytes" and int(_parsed(name, text, "int")) < LEAST_SEGMENT:
        raise ValueError(f"{name} must be at least {LEAST_SEGMENT}, not {text}")


def _check_lags(config: LogConfig, prefix: str = "") -> None:
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        raise ValueError(
            f"{prefix}min.compaction.lag.ms ({low}) is above {prefix}max.compaction.lag.ms ({high})"
        )


def _is_switch(text: str) -> bool:
    return text.strip().lower() in ("true", "false")


def _is_off(text: str) -> bool:
    return text.strip().lower() == "false"


def _is_number(low: int, high: int = _INT64_MAX) -> Callable[[str], bool]:
    return lambda text: bool(fullmatch(r" *-?\d+ *", text)) and low <= int(text) <= high


def _are_replicas(text: str) -> bool:
    return text.strip() == "*" or all(fullmatch(r"\s*(\d+:\d+)?\s*", each) for each in text.split(","))


def check_topic(broker: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Raise ValueError for configs that a topic cannot be created with, or get."""
    for name in configs:
        if not is_topic_config(name):
            raise ValueError(f"Unknown topic config name: {name}")
    found = broker.log_config(configs)
    _check_lags(found)
    if int(configs.get("segment.bytes", LEAST_SEGMENT)) < LEAST_SEGMENT:
        raise ValueError(
            f"segment.bytes must be at least {LEAST_SEGMENT}, not {configs['segment.bytes']}: Apache Kafka 4 "
            "does not start on a directory with such a topic; for tests there is internal.segment.bytes"
        )
    for name, text in configs.items():
        if name in _WITHOUT_EFFECT and not _WITHOUT_EFFECT[name](text):
            raise ValueError(f"{name} cannot be {text!r}")


LEAST_SEGMENT: Final = 1 << 20
NOT_OF_TOPICS: Final = frozenset(
    {"transaction.partition.verification.enable", "producer.id.expiration.ms", "max.idle.producers"}
)
"""Settings of a log that are the broker's in Kafka."""


def is_topic_config(name: str) -> bool:
    """Whether there is a config of topics of this name."""
    of_logs = {setting.name.replace("_", ".") for setting in fields(LogConfig)}
    known = name in of_logs or name == "internal.segment.bytes" or name in _WITHOUT_EFFECT
    return known and name not in NOT_OF_TOPICS


_MOST_DECOMPRESSED: Final = 2_147_483_639  # the largest array of Java
# Topic configs that mean something on several brokers only, or to tiered storage, which there is not; and
# those that Apache Kafka 4 has removed, which older tools set. With what they may be.
_WITHOUT_EFFECT: Final[Mapping[str, Callable[[str], bool]]] = {
    "follower.replication.throttled.replicas": _are_replicas,
    "leader.replication.throttled.replicas": _are_replicas,
    "min.insync.replicas": _is_number(1, _INT32_MAX),
    "unclean.leader.election.enable": _is_switch,
    "errors.deadletterqueue.group.enable": _is_switch,
    "local.retention.bytes": _is_number(-2),
    "local.retention.ms": _is_number(-2),
    "max.decompressed.message.bytes": _is_number(1, _MOST_DECOMPRESSED),
    "remote.copy.lag.bytes": _is_number(-1),
    "remote.copy.lag.ms": _is_number(-1),
    "remote.storage.enable": _is_off,
    "remote.log.copy.disable": _is_switch,
    "remote.log.delete.on.disable": _is_switch,
    "message.format.version": lambda text: True,
    "message.downconversion.enable": _is_switch,
    "message.timestamp.difference.max.ms": _is_number(0),
}


def _parsed(name: str, text: str, kind: str) -> float | str:
    value = text.strip().lower()
    if kind == "str":
        return text.strip()
    if kind == "bool":
        if value in ("true", "false"):
            return value == "true"
    elif "_" not in text:
        try:
            return float(value) if kind == "float" else int(value)
        except ValueError:
            pass
    raise ValueError(f"{name} must be {'true or false' if kind == 'bool' else 'a number'}, not {text!r}")


def _scaled(name: str, text: str, unit: int) -> str:
    """The text of a topic's setting; a negative number means the same in every unit."""
    is_retention = TOPIC_SYNONYMS[name][0] == "retention.ms"
    if unit <= 1 and not is_retention:
        return text
    number = int(_parsed(name, text, "int"))
    if number < 0:
        return "-1" if is_retention else str(number)
    return str(number * unit)
