"""``BrokerConfig``: the settings of a broker, and the table of all settings that brokers and topics have.

Source: ``KafkaConfig``, ``TransactionLogConfig``, ``TransactionStateManagerConfig``,
``GroupCoordinatorConfig``, ``DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from re import fullmatch
from typing import Any, Final

from txnkafka.broker.config.config_names import (
    TOPIC_SYNONYMS,
    TOPIC_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    contradiction,
    refusal,
)
from txnkafka.config import (
    INT32_MAX,
    LOG_DEFS,
    ConfigDef,
    LogConfig,
    check_fields,
    config_defs,
    long,
    parsed,
    row,
)
from txnkafka.coordinator.group.consumer.consumer_config import ASSIGNORS, MigrationPolicy

LOG = logging.getLogger("txnkafka.broker")

MOST_PARTITIONS: Final = 10_000
"""Partitions created at once (``ReplicationControlManager.MAX_PARTITIONS_PER_BATCH``), by a request or for a
coordinator."""
LEAST_SEGMENT: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """Field names are Kafka's with underscores; times in milliseconds, sizes in bytes. ``topic_defaults`` has
    the settings of topics without their own, by Kafka's names of topic configs; ``given`` has the settings as
    given, by the names of the broker.

    Raises ValueError for a value that Kafka would refuse, or with which a coordinator would have no topic."""

    num_partitions: int = row("partitions of a topic that is created without a number", 1, 1)
    auto_create_topics_enable: bool = row("create topics that clients ask for", True)
    delete_topic_enable: bool = row("let clients delete topics", True)
    transaction_state_log_num_partitions: int = row(
        "partitions of __transaction_state", 50, 1, MOST_PARTITIONS
    )
    transaction_state_log_segment_bytes: int = row("segment.bytes of __transaction_state", 104_857_600, 1)
    offsets_topic_num_partitions: int = row("partitions of __consumer_offsets", 50, 1, MOST_PARTITIONS)
    offsets_topic_segment_bytes: int = row("segment.bytes of __consumer_offsets", 104_857_600, 1)
    offset_metadata_max_bytes: int = row("largest metadata of a committed offset", 4_096, 0)
    offsets_retention_minutes: int = row("how long offsets are kept that no member uses", 10_080, 1)
    offsets_retention_check_interval_ms: int = long("time between searches for old offsets", 600_000, 1)
    group_initial_rebalance_delay_ms: int = row("how long a first rebalance waits for members", 3_000, 0)
    group_min_session_timeout_ms: int = row("least session timeout of a classic member", 6_000, 0)
    group_max_session_timeout_ms: int = row("largest session timeout of a classic member", 1_800_000, 0)
    group_max_size: int = row("members of a classic group", INT32_MAX, 1)
    group_consumer_session_timeout_ms: int = row("session timeout of a consumer group", 45_000, 1)
    group_consumer_min_session_timeout_ms: int = row("least session timeout a group may set", 45_000, 1)
    group_consumer_max_session_timeout_ms: int = row("largest session timeout a group may set", 60_000, 1)
    group_consumer_heartbeat_interval_ms: int = row("heartbeat interval of a consumer group", 5_000, 1)
    group_consumer_min_heartbeat_interval_ms: int = row("least heartbeat interval of a group", 5_000, 1)
    group_consumer_max_heartbeat_interval_ms: int = row("largest heartbeat interval of a group", 15_000, 1)
    group_consumer_assignment_interval_ms: int = row(
        "least time between two assignments of a group", 1_000, 0, is_dynamic=True
    )
    group_consumer_min_assignment_interval_ms: int = row("least assignment interval of a group", 0, 0)
    group_consumer_max_assignment_interval_ms: int = row("largest assignment interval of a group", 15_000, 0)
    group_consumer_regex_refresh_interval_ms: int = row(
        "time after which patterns are matched again", 600_000, 10_000, is_internal=True
    )
    group_consumer_max_size: int = row("members of a consumer group", INT32_MAX, 1)
    group_consumer_assignors: str = row(
        "assignors; members that name none use the first", "uniform,range", kind="list"
    )
    group_consumer_migration_policy: str = row(
        "which groups with members may change their protocol", "bidirectional"
    )
    transaction_max_timeout_ms: int = row("largest transaction.timeout.ms of a producer", 900_000, 1)
    transactional_id_expiration_ms: int = row("how long an idle transactional id is kept", 604_800_000, 1)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = row(
        "time between searches for transactions that timed out", 10_000, 1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = row(
        "time between searches for idle transactional ids", 3_600_000, 1
    )
    transaction_two_phase_commit_enable: bool = row(
        "let producers open transactions without a timeout, and keep an open one after a restart (KIP-939)",
        False,
    )
    unstable_api_versions_enable: bool = row(
        "announce and accept InitProducerId 6, which two-phase commit needs", False, is_internal=True
    )
    message_max_bytes: int = row("largest batch", 1_048_588, 0, is_dynamic=True)
    fetch_max_bytes: int = row("largest answer to a fetch", 57_671_680, 1024)
    socket_request_max_bytes: int = row("largest request", 104_857_600, 1)
    max_connections: int = row("open connections", INT32_MAX, 0, is_dynamic=True)
    max_connections_per_ip: int = row("open connections of one address", INT32_MAX, 1, is_dynamic=True)
    connections_max_idle_ms: int = long("how long an idle connection stays open; -1: for ever", 600_000, -1)
    max_incremental_fetch_session_cache_slots: int = row("fetch sessions", 1000, 0)
    log_retention_check_interval_ms: int = long("time between searches for old segments", 300_000, 1)
    log_cleaner_enable: bool = row("compact logs", True)
    log_cleaner_backoff_ms: int = long(
        "how long the cleaner waits when no log needs compaction", 15_000, 0, is_dynamic=True
    )
    log_cleaner_dedupe_buffer_size: int = long(
        "bytes for keys and offsets in one pass", 134_217_728, (1 << 20) + 1, is_dynamic=True
    )
    log_cleaner_io_buffer_load_factor: float = row(
        "how full the cleaner's table of keys may be", 0.9, 0.01, is_dynamic=True
    )
    metadata_log_max_record_bytes_between_snapshots: int = long(
        "bytes of records after which a snapshot is written", 20_971_520, 1
    )
    metadata_log_max_snapshot_interval_ms: int = long(
        "time after which a snapshot is written; 0: never", 3_600_000, 0
    )
    metadata_max_retention_bytes: int = long(
        "size of the metadata log above which old segments are deleted; -1: none", 104_857_600, -1
    )
    metadata_max_retention_ms: int = long(
        "age at which segments of the metadata log are deleted; -1: never", 604_800_000, -1
    )
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_groups()
        _check_lags(LogConfig.of(self.topic_defaults), "log.cleaner.")

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> BrokerConfig:
        """Parse Kafka's names and texts, as ``server.properties`` has them. A setting without effect on a
        broker of one node is logged and ignored. Raises ValueError for an unknown name, for a feature that is
        not supported, and for a bad value."""
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
    def refusals(cls, configs: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that a broker of one node cannot have, each with the reason; bad values are not
        among them."""
        known, found = [*_FIELDS, *TOPIC_SYNONYMS], dict[str, str]()
        for name, text in configs.items():
            if name in WITHOUT_EFFECT:
                found[name] = contradiction(name, text)
            elif name not in known:
                found[name] = refusal(name, known)
        return {name: reason for name, reason in found.items() if reason}

    @classmethod
    def _parsed(cls, configs: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the broker's values by field, and the topics' values."""
        found = {
            name.replace(".", "_"): parsed(_FIELDS[name], name, text)
            for name, text in configs.items()
            if name in _FIELDS
        }
        defaults: dict[str, str] = {}
        for name, (topic_name, unit) in TOPIC_SYNONYMS.items():
            if name in configs and topic_name not in defaults:  # only the first counts
                defaults[topic_name] = _topic_default(name, topic_name, configs[name], unit)
        return found, defaults

    def log_config(self, configs: Mapping[str, str]) -> LogConfig:
        """Return the settings of a topic that has set ``configs``. Raises ValueError."""
        defaults = {"max.message.bytes": str(self.message_max_bytes), **self.topic_defaults}
        with_effect = {name: text for name, text in configs.items() if name not in TOPIC_WITHOUT_EFFECT}
        return LogConfig.of({**defaults, **with_effect})

    def faults(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Return the invalid configs of a topic, which another broker may have created, each with the reason:
        an existing topic is served without them."""
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

    @property
    def group_limits(self) -> dict[str, tuple[int, int, int]]:
        """Least value, default and largest value of the configs of consumer groups that have limits."""
        return {
            "consumer.heartbeat.interval.ms": (
                self.group_consumer_min_heartbeat_interval_ms,
                self.group_consumer_heartbeat_interval_ms,
                self.group_consumer_max_heartbeat_interval_ms,
            ),
            "consumer.session.timeout.ms": (
                self.group_consumer_min_session_timeout_ms,
                self.group_consumer_session_timeout_ms,
                self.group_consumer_max_session_timeout_ms,
            ),
            "consumer.assignment.interval.ms": (
                self.group_consumer_min_assignment_interval_ms,
                self.group_consumer_assignment_interval_ms,
                self.group_consumer_max_assignment_interval_ms,
            ),
        }

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names in ``group.consumer.assignors``."""
        return tuple(name.strip() for name in self.group_consumer_assignors.split(",") if name.strip())

    def _check_groups(self) -> None:
        """Raise ValueError for settings that Kafka would refuse together."""
        for name, (low, value, high) in self.group_limits.items():
            if not low <= value <= high:
                kind, _, stem = name.partition(".")
                limits = f"group.{kind}.min.{stem} and group.{kind}.max.{stem}: {low} and {high}"
                raise ValueError(f"group.{name} is {value}, and must be between {limits}")
        if self.group_consumer_heartbeat_interval_ms >= self.group_consumer_session_timeout_ms:
            raise ValueError("group.consumer.heartbeat.interval.ms must be less than the session timeout")
        names = self.assignors
        if not names or len(set(names)) < len(names) or not set(names) <= set(ASSIGNORS):
            known = " and ".join(ASSIGNORS)
            text = f"must name {known}, or one assignor, not {self.group_consumer_assignors!r}"
            raise ValueError(f"group.consumer.assignors {text}")
        policies = [policy.value for policy in MigrationPolicy]
        if self.group_consumer_migration_policy.lower() not in policies:
            raise ValueError(f"group.consumer.migration.policy must be one of {', '.join(policies)}")


def _topic_default(name: str, topic_name: str, text: str, unit: int) -> str:
    """Return the topic's text of a broker setting in another unit. Raises ValueError for values that the
    broker's setting may not have where the topic's may."""
    spec = LOG_DEFS[topic_name]
    is_retention = topic_name == "retention.ms"
    if unit > 1 or is_retention:
        number = int(parsed(spec, name, text))
        if number == 0 and is_retention:
            raise ValueError(f"{name} must be at least 1, or negative: without a limit")
        # a negative number means the same in every unit
        return "-1" if number < 0 and is_retention else str(number if number < 0 else number * unit)
    if topic_name == "segment.bytes" and int(parsed(spec, name, text)) < LEAST_SEGMENT:
        raise ValueError(f"{name} must be at least {LEAST_SEGMENT}, not {text}")
    return text


def _check_lags(config: LogConfig, prefix: str = "") -> None:
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        raise ValueError(
            f"{prefix}min.compaction.lag.ms ({low}) is above {prefix}max.compaction.lag.ms ({high})"
        )


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
            "does not start on a directory with this value; use internal.segment.bytes for tests"
        )
    for name, text in configs.items():
        if name in TOPIC_WITHOUT_EFFECT and not _is_possible(TOPIC_WITHOUT_EFFECT[name], text):
            raise ValueError(f"{name} cannot be {text!r}")


def _is_possible(spec: ConfigDef, text: str) -> bool:
    if spec.kind == "list":
        return text.strip() == "*" or all(fullmatch(r"\s*(\d+:\d+)?\s*", each) for each in text.split(","))
    if spec.low is not None and spec.high is not None:
        return bool(fullmatch(r" *-?\d+ *", text)) and spec.low <= int(text) <= spec.high
    return spec.kind != "boolean" or text.strip().lower() in (spec.allowed or ("true", "false"))


def is_topic_config(name: str) -> bool:
    """Return whether topics have a config of this name."""
    return name in TOPIC_DEFS or name == "internal.segment.bytes"


_NOT_OF_TOPICS: Final = (  # the broker's in Kafka
    "transaction.partition.verification.enable", "producer.id.expiration.ms", "max.idle.producers",
)  # fmt: skip
_FIELDS: Final = config_defs(BrokerConfig)
TOPIC_DEFS: Final = {
    name: spec for name, spec in (LOG_DEFS | TOPIC_WITHOUT_EFFECT).items() if name not in _NOT_OF_TOPICS
}
"""All configs of topics."""


def _broker_defs() -> Iterator[ConfigDef]:
    yield from _FIELDS.values()
    for spec in LOG_DEFS.values():
        for name in spec.broker:
            default, unit = spec.default, TOPIC_SYNONYMS[name][1]
            made = spec._replace(name=name, is_dynamic=name == spec.broker[0])
            if unit > 1:  # hours and minutes
                made, default = made._replace(kind="int"), str(int(default or 0) // unit)
            yield made._replace(default=default if name == spec.broker[-1] else None)
    yield from (spec for _, spec in sorted(TOPIC_WITHOUT_EFFECT.items()) if spec.is_dynamic)


BROKER_DEFS: Final = {spec.name: spec for spec in _broker_defs()}
"""All settings of a broker, without those in ``WITHOUT_EFFECT``. Of several names for one setting, only the
last one has a default."""
DYNAMIC: Final = frozenset(name for name, spec in BROKER_DEFS.items() if spec.is_dynamic)
"""Settings that can be changed while the broker runs."""
