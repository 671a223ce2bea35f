"""Settings under Kafka's names: ``ConfigDef``, a row of the table of settings, and the rows of logs.

A dataclass declares a row with each field, so code reads typed fields; ``config_defs`` returns the rows.

Source: ``ConfigDef``, ``LogConfig``, ``ServerLogConfigs``, ``ServerTopicConfigSynonyms``,
``ProducerStateManagerConfig`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property, lru_cache, partial
from numbers import Integral, Real
from typing import Any, Final, Literal, NamedTuple

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
Kind = Literal["boolean", "string", "int", "long", "double", "list"]
_KIND_OF: Final[dict[type, Kind]] = {bool: "boolean", str: "string", int: "int", float: "double"}
_HIGHEST: Final = {"int": INT32_MAX, "long": INT64_MAX, "double": 1}
NOUNS: Final = {"boolean": "true or false", "int": "a number", "long": "a number", "double": "a number"}
_TYPES: Final[Mapping[str, tuple[Any, str]]] = {
    "int": ((int, Integral), "an int"),
    "float": ((int, float, Real), "a number"),
    "str": (str, "a str"),
    "bool": (bool, "a bool"),
}


class ConfigDef(NamedTuple):
    """One setting. ``broker`` has the names by which a broker sets it for all topics or groups, in order of
    precedence. ``low`` and ``high`` limit the values of a user, ``allowed`` has the possible words.
    ``is_dynamic``: a running broker accepts a new value. An internal setting is not described."""

    name: str
    kind: Kind
    default: str | None
    doc: str = ""
    broker: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    allowed: tuple[str, ...] = ()
    is_dynamic: bool = False
    is_internal: bool = False


def text_of(value: Any) -> str:
    """Return a value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def row(
    doc: str, default: Any, low: float | None = None, high: float | None = None, *, broker: str = "",
    kind: Kind | None = None, code_high: float | None = None, **rest: Any,
) -> Any:  # fmt: skip
    """Declare a field with its row, see ``ConfigDef``. Code may set up to ``code_high``."""
    kind = kind or _KIND_OF[type(default)]
    high = high or _HIGHEST.get(kind)
    made = ConfigDef("", kind, text_of(default), doc, tuple(broker.split()), low, high, **rest)
    return field(default=default, metadata={"row": made, "high": code_high or high})


long = partial(row, kind="long")


def config_defs(cls: type) -> dict[str, ConfigDef]:
    """Return the rows that a dataclass declares, by Kafka's name."""
    declared: tuple[Field[Any], ...] = fields(cls)
    specs = {each.name.replace("_", "."): each.metadata["row"] for each in declared if each.metadata}
    return {name: spec._replace(name=name) for name, spec in specs.items()}


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The settings of one topic's logs; times in milliseconds, sizes in bytes. Raises ValueError for a value
    that Kafka would refuse, TypeError for one of another type: ``of`` has texts."""

    segment_bytes: int = row("size at which a segment is closed", 1 << 30, 14, broker="log.segment.bytes")
    segment_ms: int = long(
        "age at which a segment is closed", 604_800_000, 1, broker="log.roll.ms log.roll.hours"
    )
    segment_jitter_ms: int = long(
        "maximum random reduction of segment.ms", 0, 0, broker="log.roll.jitter.ms log.roll.jitter.hours"
    )
    segment_index_bytes: int = row("maximum size of an index", 10 << 20, 4, broker="log.index.size.max.bytes")
    index_interval_bytes: int = row(
        "bytes of log between index entries", 4096, 0, broker="log.index.interval.bytes"
    )
    flush_messages: int = long(
        "records after which a flush is due", INT64_MAX, 1, broker="log.flush.interval.messages"
    )
    flush_ms: int = long(
        "age of the oldest unflushed record at which a flush is due", INT64_MAX, 0,
        broker="log.flush.interval.ms log.flush.scheduler.interval.ms",
    )  # fmt: skip
    retention_ms: int = long(
        "age at which a segment may be deleted; -1: never", 604_800_000, -1,
        broker="log.retention.ms log.retention.minutes log.retention.hours",
    )  # fmt: skip
    retention_bytes: int = long(  # as in Kafka, every negative number means the same
        "size of the log above which segments are deleted; -1: none", -1, -(2**63),
        broker="log.retention.bytes",
    )  # fmt: skip
    file_delete_delay_ms: int = long(
        "how long a deleted file stays on the disk", 60_000, 0, broker="log.segment.delete.delay.ms"
    )
    max_message_bytes: int = row("largest batch", 1_048_588, 0)
    cleanup_policy: str = row(
        "compact, delete, both with a comma, or none", "delete", broker="log.cleanup.policy",
        allowed=("compact", "delete"), kind="list",
    )  # fmt: skip
    delete_retention_ms: int = long(
        "how long tombstones and markers stay", 86_400_000, 0, broker="log.cleaner.delete.retention.ms"
    )
    min_compaction_lag_ms: int = long(
        "age below which records are not compacted", 0, 0, broker="log.cleaner.min.compaction.lag.ms"
    )
    max_compaction_lag_ms: int = long(
        "age above which records must be compacted", INT64_MAX, 1, broker="log.cleaner.max.compaction.lag.ms"
    )
    min_cleanable_dirty_ratio: float = row(
        "share of new bytes above which a log is compacted", 0.5, 0, broker="log.cleaner.min.cleanable.ratio"
    )
    compression_type: str = row(
        "codec of stored batches", "producer", broker="compression.type",
        allowed=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    )  # fmt: skip
    compression_gzip_level: int = row(
        "1 to 9, or -1 for gzip's default", -1, -1, 9, broker="compression.gzip.level"
    )
    compression_lz4_level: int = row("1 to 17", 9, 1, 17, broker="compression.lz4.level")
    compression_zstd_level: int = row("-131072 to 22", 3, -131_072, 22, broker="compression.zstd.level")
    message_timestamp_type: str = row(
        "source of record timestamps: producer or broker", "CreateTime", broker="log.message.timestamp.type",
        allowed=("CreateTime", "LogAppendTime"),
    )  # fmt: skip
    message_timestamp_before_max_ms: int = long(
        "how old a timestamp may be", INT64_MAX, 0, broker="log.message.timestamp.before.max.ms"
    )
    message_timestamp_after_max_ms: int = long(
        "how far ahead a timestamp may be", 3_600_000, 0, broker="log.message.timestamp.after.max.ms"
    )
    preallocate: bool = row("extend a new segment's file to segment.bytes", False, broker="log.preallocate")
    transaction_partition_verification_enable: bool = row(
        "require the verification of KIP-890", True, broker="transaction.partition.verification.enable"
    )
    producer_id_expiration_ms: int = row(  # a repair forgets no producer
        "how long an idle producer is remembered", 86_400_000, 1, broker="producer.id.expiration.ms",
        code_high=INT64_MAX,
    )  # fmt: skip
    max_idle_producers: int = long("above this the oldest are removed; not in Kafka", 1_000_000, 1)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.compression_gzip_level == 0:
            raise ValueError("compression.gzip.level must be 1 to 9, or -1 for gzip's default, not 0")

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> LogConfig:
        """Parse Kafka's names and texts, as topics have them. Raises ValueError for an unknown setting."""
        return _log_config(tuple((name, str(text)) for name, text in configs.items()))

    @property
    def compact(self) -> bool:
        """Return whether the log is compacted."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Return whether old segments are deleted."""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Return whether the broker's clock sets timestamps."""
        return self.message_timestamp_type == "LogAppendTime"

    @cached_property
    def roll_ms(self) -> int:
        """The age at which a segment is closed; in a compacted log also limited by max.compaction.lag.ms."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms


LOG_DEFS: Final = config_defs(LogConfig)


@lru_cache(maxsize=64)  # all partitions of a topic, and most topics, have the same
def _log_config(configs: tuple[tuple[str, str], ...]) -> LogConfig:
    found: dict[str, Any] = {}
    for name, text in configs:
        spec = LOG_DEFS.get(name.removeprefix("internal."))
        if spec is None:
            raise ValueError(f"a log has no setting {name}")
        value = parsed(spec, name, text)
        parts = [part.strip() for part in text.split(",")]
        if spec.kind == "list" and all(parts):  # as Kafka reads and shows it
            value = ",".join(dict.fromkeys(parts))
        if isinstance(value, int) and spec.high is not None and value > spec.high:
            raise ValueError(f"{name} must be {spec.low} to {spec.high}, not {text}")
        found[spec.name.replace(".", "_")] = value
    return LogConfig(**found)


@dataclass(frozen=True, kw_only=True)
class CleanerConfig:
    """The settings of the log cleaner, ``log.cleaner.…`` of the broker. Raises ValueError and TypeError
    like LogConfig."""

    dedupe_buffer_size: int = long("bytes for keys and offsets in one pass", 128 << 20, 80)
    io_buffer_load_factor: float = row("how full the table of keys may be", 0.9, 0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.io_buffer_load_factor == 0:
            raise ValueError("io.buffer.load.factor must be above 0 and at most 1, not 0")


def check_fields(config: Any) -> None:
    """Compare the fields of a dataclass with the rows that it declares. Raises ValueError and TypeError."""
    for declared in fields(config):
        if not declared.metadata:
            continue
        spec, high = declared.metadata["row"], declared.metadata["high"]
        name, value = declared.name.replace("_", "."), getattr(config, declared.name)
        types, called = _TYPES[str(declared.type)]
        if not isinstance(value, types):
            raise TypeError(f"{name} must be {called}, not {value!r}")
        if spec.low is not None and not spec.low <= value <= high:
            raise ValueError(f"{name} must be {spec.low} to {high}, not {value}")
        is_list = spec.kind == "list"
        words = {word.strip() for word in value.split(",") if value.strip()} if is_list else {value}
        if spec.allowed and not words <= set(spec.allowed):
            raise ValueError(f"{name} must be one of {', '.join(spec.allowed)}, not {value!r}")


def parsed(spec: ConfigDef, name: str, text: str) -> Any:
    """Return the value of a text. Raises ValueError, with ``name`` in the message."""
    try:
        if spec.kind == "boolean":
            return {"true": True, "false": False}[text.strip().lower()]
        if spec.kind in NOUNS and "_" in text:
            raise ValueError("Python's own way to write numbers")
        return {"int": int, "long": int, "double": float}.get(spec.kind, str)(text.strip())
    except (KeyError, ValueError):
        raise ValueError(f"{name} must be {NOUNS[spec.kind]}, not {text!r}") from None
