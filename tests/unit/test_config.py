"""Settings of a topic under Kafka's names: defaults, parsing, and values that Kafka refuses."""

from __future__ import annotations

from typing import Any

import pytest

from txnkafka.config import CleanerConfig, LogConfig


def test_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms, config.index_interval_bytes) == (
        1 << 30,
        604_800_000,
        4096,
    )
    assert (config.retention_ms, config.retention_bytes, config.max_message_bytes) == (
        604_800_000,
        -1,
        1_048_588,
    )
    assert config.delete
    assert not config.compact
    assert not config.log_append_time
    assert LogConfig.of({}) == config


def test_settings_come_as_text_under_kafkas_names() -> None:
    config = LogConfig.of(
        {
            "segment.bytes": "2000000",
            "internal.segment.bytes": " 500 ",
            "cleanup.policy": "compact, delete",
            "min.cleanable.dirty.ratio": "0.25",
            "message.timestamp.type": "LogAppendTime",
            "preallocate": "TRUE",
            "compression.type": "zstd",
            "compression.zstd.level": "-5",
        }
    )
    assert (config.segment_bytes, config.min_cleanable_dirty_ratio) == (500, 0.25)
    assert config.compact
    assert config.delete
    assert config.log_append_time
    assert config.preallocate is True
    assert (config.compression_type, config.compression_zstd_level) == ("zstd", -5)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("segment.byte", "1", "has no setting segment.byte"),
        ("segment.bytes", "many", "must be a number, not 'many'"),
        ("segment.bytes", "13", "segment.bytes must be 14 to 2147483647, not 13"),
        ("segment.bytes", "2147483648", "not 2147483648"),
        ("retention.ms", "-2", "retention.ms must be -1"),
        ("preallocate", "yes", "must be true or false"),
        ("retention.ms", "1_000", "must be a number, not '1_000'"),
        ("min.cleanable.dirty.ratio", "0.2_5", "must be a number"),
        ("cleanup.policy", "shrink", "must be one of"),
        ("cleanup.policy", "delete,", "must be one of"),
        ("cleanup.policy", ",", "must be one of"),
        ("cleanup.policy", "compact,shrink", "must be one of"),
        ("compression.type", "lzo", "must be one of"),
        ("compression.gzip.level", "0", "1 to 9, or -1"),
        ("message.timestamp.type", "logappendtime", "must be one of"),
        ("min.cleanable.dirty.ratio", "1.5", "must be 0 to 1"),
        ("compression.gzip.level", "10", "must be -1 to 9"),
        ("producer.id.expiration.ms", "2147483648", "must be 1 to 2147483647"),
    ],
)
def test_what_kafka_would_refuse(name: str, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        LogConfig.of({name: text})


def test_a_compacted_log_does_not_hold_records_back() -> None:
    times = {"segment_ms": 1000, "max_compaction_lag_ms": 300}
    assert LogConfig(**times).roll_ms == 1000
    assert LogConfig(cleanup_policy="compact", **times).roll_ms == 300


def test_a_repair_may_forget_no_producer() -> None:
    assert LogConfig(producer_id_expiration_ms=2**63 - 1).producer_id_expiration_ms == 2**63 - 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"segment_bytes": "10"}, "segment.bytes must be an int, not '10'"),
        ({"retention_ms": None}, "retention.ms must be an int, not None"),
        ({"retention_ms": 1.5}, "retention.ms must be an int, not 1.5"),
        ({"cleanup_policy": 3}, "cleanup.policy must be a str, not 3"),
        ({"preallocate": "true"}, "preallocate must be a bool, not 'true'"),
        ({"min_cleanable_dirty_ratio": "0.5"}, "min.cleanable.dirty.ratio must be a number, not '0.5'"),
    ],
)
def test_a_value_of_another_type_is_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=f"^{says}$"):
        LogConfig(**settings)


def test_a_value_of_another_type_for_the_cleaner_is_named() -> None:
    factor: Any = "0.9"
    with pytest.raises(TypeError, match=r"io\.buffer\.load\.factor must be a number, not '0.9'"):
        CleanerConfig(io_buffer_load_factor=factor)
