"""Topic-level log settings, with Kafka's names, defaults and checks.

Source: ``LogConfig``, ``ServerLogConfigs``, ``ProducerStateManagerConfig`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Final

__all__ = ["CleanerConfig", "LogConfig"]

_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1
_CODECS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
_POLICIES = ("compact", "delete")
_TYPES: Final[Mapping[str, tuple[Any, str]]] = {
    "int": ((int, Integral), "an int"),
    "float": ((int, float, Real), "a number"),
    "str": (str, "a str"),
    "bool": (bool, "a bool"),
}


def _number(default: int, low: int, high: int = _INT64_MAX, *, doc: str, text_high: int | None = None) -> Any:
    """``text_high`` is the limit of what a user may set, where code may set more."""
    limits = {"low": low, "high": high, "text_high": high if text_high is None else text_high}
    return field(default=default, metadata={**limits, "doc": doc})


def _words(default: str, allowed: tuple[str, ...], *, doc: str) -> Any:
    return field(default=default, metadata={"allowed": allowed, "doc": doc})


def _switch(default: bool, *, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The settings of one topic's logs; times in milliseconds, sizes in bytes. Raises ValueError for a value
    that Kafka would refuse, TypeError for one of another type: ``of`` has texts."""

    segment_bytes: int = _number(1 << 30, 14, _INT32_MAX, doc="size at which a segment is closed")
    segment_ms: int = _number(604_800_000, 1, doc="age at which a segment is closed")
    segment_jitter_ms: int = _number(0, 0, doc="maximum random reduction of segment.ms")
    segment_index_bytes: int = _number(10 << 20, 4, _INT32_MAX, doc="maximum size of an index")
    index_interval_bytes: int = _number(4096, 0, _INT32_MAX, doc="bytes of log between index entries")
    flush_messages: int = _number(_INT64_MAX, 1, doc="records after which a flush is due")
    flush_ms: int = _number(_INT64_MAX, 0, doc="age of the oldest unflushed record at which a flush is due")
    retention_ms: int = _number(604_800_000, -1, doc="age at which a segment may be deleted; -1: never")
    retention_bytes: int = _number(  # as in Kafka, every negative number means the same
        -1, -(2**63), doc="size of the log above which segments are deleted; -1: none"
    )
    file_delete_delay_ms: int = _number(60_000, 0, doc="how long a deleted file stays on the disk")
    max_message_bytes: int = _number(1_048_588, 0, _INT32_MAX, doc="largest batch")
    cleanup_policy: str = _words("delete", _POLICIES, doc="compact, delete, both with a comma, or none")
    delete_retention_ms: int = _number(86_400_000, 0, doc="how long tombstones and markers stay")
    min_compaction_lag_ms: int = _number(0, 0, doc="age below which records are not compacted")
    max_compaction_lag_ms: int = _number(_INT64_MAX, 1, doc="age above which records must be compacted")
    min_cleanable_dirty_ratio: float = 0.5
    compression_type: str = _words("producer", _CODECS, doc="codec of stored batches")
    compression_gzip_level: int = _number(-1, -1, 9, doc="1 to 9, or -1 for gzip's default")
    compression_lz4_level: int = _number(9, 1, 17, doc="1 to 17")
    compression_zstd_level: int = _number(3, -131_072, 22, doc="-131072 to 22")
    message_timestamp_type: str = _words(
        "CreateTime", ("CreateTime", "LogAppendTime"), doc="source of record timestamps: producer or broker"
    )
    message_timestamp_before_max_ms: int = _number(_INT64_MAX, 0, doc="how old a timestamp may be")
    message_timestamp_after_max_ms: int = _number(3_600_000, 0, doc="how far ahead a timestamp may be")
    preallocate: bool = _switch(False, doc="extend a new segment's file to segment.bytes")
    transaction_partition_verification_enable: bool = _switch(True, doc="require the verification of KIP-890")
    producer_id_expiration_ms: int = _number(  # a repair forgets no producer
        86_400_000, 1, text_high=_INT32_MAX, doc="how long an idle producer is remembered"
    )
    max_idle_producers: int = _number(1_000_000, 1, doc="above this the oldest are removed; not in Kafka")

    def __post_init__(self) -> None:
        for setting in fields(self):
            _check(setting, getattr(self, setting.name))
        if self.compression_gzip_level == 0:
            raise ValueError("compression.gzip.level must be 1 to 9, or -1 for gzip's default, not 0")
        if not 0 <= self.min_cleanable_dirty_ratio <= 1:
            ratio = self.min_cleanable_dirty_ratio
            raise ValueError(f"min.cleanable.dirty.ratio must be 0 to 1, not {ratio}")

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> LogConfig:
        """Parse Kafka's names and texts, as topics have them. Raises ValueError for an unknown setting."""
        settings = {setting.name: setting for setting in fields(cls)}
        found: dict[str, Any] = {}
        for name, text in configs.items():
            known = name.removeprefix("internal.").replace(".", "_")
            if known not in settings:
                raise ValueError(f"a log has no setting {name}")
            found[known] = _parsed(name, str(text), str(settings[known].type))
            words = [word.strip() for word in str(text).split(",")]
            if known == "cleanup_policy" and all(words):  # a list, as Kafka reads and shows it
                found[known] = ",".join(dict.fromkeys(words))
            rules = settings[known].metadata
            if "text_high" in rules and found[known] > rules["text_high"]:
                raise ValueError(f"{name} must be {rules['low']} to {rules['text_high']}, not {text}")
        return cls(**found)

    @property
    def compact(self) -> bool:
        """Whether the log is compacted."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether old segments are deleted."""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Whether timestamps are set by the broker's clock."""
        return self.message_timestamp_type == "LogAppendTime"

    @cached_property
    def roll_ms(self) -> int:
        """The age at which a segment is closed; in a compacted log also limited by max.compaction.lag.ms."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms


@dataclass(frozen=True, kw_only=True)
class CleanerConfig:
    """The settings of the log cleaner, ``log.cleaner.…`` of the broker. Raises ValueError and TypeError
    like LogConfig."""

    dedupe_buffer_size: int = _number(128 << 20, 80, doc="bytes for keys and offsets in one pass")
    io_buffer_load_factor: float = 0.9

    def __post_init__(self) -> None:
        for setting in fields(self):
            _check(setting, getattr(self, setting.name))
        if not 0 < self.io_buffer_load_factor <= 1:
            factor = self.io_buffer_load_factor
            raise ValueError(f"io.buffer.load.factor must be above 0 and at most 1, not {factor}")


def _check(setting: Field[Any], value: Any) -> None:
    rules, shown = setting.metadata, setting.name.replace("_", ".")
    types, called = _TYPES[str(setting.type)]
    if not isinstance(value, types):
        raise TypeError(f"{shown} must be {called}, not {value!r}")
    if "low" in rules and not rules["low"] <= value <= rules["high"]:
        raise ValueError(f"{shown} must be {rules['low']} to {rules['high']}, not {value}")
    if "allowed" in rules:
        is_list = rules["allowed"] is _POLICIES
        words = {word.strip() for word in value.split(",") if value.strip()} if is_list else {value}
        if not words <= set(rules["allowed"]):
            raise ValueError(f"{shown} must be one of {', '.join(rules['allowed'])}, not {value!r}")


def _parsed(name: str, text: str, kind: str) -> Any:
    try:
        if kind == "bool":
            return {"true": True, "false": False}[text.strip().lower()]
        if kind != "str" and "_" in text:
            raise ValueError("Python's own way to write numbers")
        return {"int": int, "float": float}.get(kind, str)(text.strip())
    except (KeyError, ValueError):
        raise ValueError(f"{name} must be a {kind}, not {text!r}") from None
