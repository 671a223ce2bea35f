"""Which settings count: by their levels, and of those that another broker has written."""

from __future__ import annotations

import pytest

from tests.unit.broker.node import batch_of
from tests.unit.broker.test_config_alteration import BROKER, DELETE, SET, TOPIC, alter, config, made
from txnkafka.coordinator.registry import metadata_records
from txnkafka.error_codes import ErrorCode

MIN_LAG, MAX_LAG = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"


def test_configs_of_another_broker_that_are_not_understood_do_not_count() -> None:
    """Apache Kafka has written them; the broker starts, and the others count."""
    node = made()
    configs = {"log.retention.ms": "7", "log.flush.interval.ms": "x", "num.io.threads": "16"}
    records = [metadata_records.config(BROKER, "1", *item) for item in configs.items()]
    node.broker.metadata.append(records, node.now_ms)
    node.restart()
    assert (config(node).retention_ms, config(node).flush_ms) == (7, (1 << 63) - 1)
    assert alter(node, BROKER, "1", ("num.io.threads", DELETE, None)) == "NONE"


def test_settings_that_contradict_each_other() -> None:
    """What is set at once, or was set before, counts for that."""
    node = made(topic_defaults={"max.compaction.lag.ms": "7"})
    assert alter(node, BROKER, "1", (MIN_LAG, SET, "8")) == "INVALID_REQUEST"
    assert alter(node, BROKER, "", (MAX_LAG, SET, "9")) == "NONE"
    assert alter(node, BROKER, "1", (MIN_LAG, SET, "10")) == "INVALID_REQUEST"
    assert alter(node, BROKER, "1", (MIN_LAG, SET, "8")) == "NONE"
    assert alter(node, BROKER, "1", (MAX_LAG, SET, "6")) == "INVALID_REQUEST"
    assert alter(node, BROKER, "1", (MAX_LAG, SET, "20"), (MIN_LAG, SET, "15")) == "NONE"
    for _ in range(2):
        assert (config(node).min_compaction_lag_ms, config(node).max_compaction_lag_ms) == (15, 20)
        node.restart()


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        ("max.connections.per.ip", "0", "INVALID_REQUEST"),
        ("log.retention.ms", "0", "INVALID_REQUEST"),
        ("log.retention.ms", "-5", "NONE"),
        ("log.segment.bytes", "14", "INVALID_REQUEST"),
        ("log.cleaner.dedupe.buffer.size", "1048576", "INVALID_REQUEST"),
    ],
)
def test_settings_that_kafka_refuses(name: str, value: str, answer: str) -> None:
    node = made()
    assert [alter(node, BROKER, where, (name, SET, value)) for where in ("1", "")] == [answer] * 2


def test_a_topic_with_configs_that_are_not_understood_is_served(caplog: pytest.LogCaptureFixture) -> None:
    """Another broker, or an older one, has written them."""
    node = made()
    configs = {
        "message.timestamp.difference.max.ms": "1", "no.such": "1", "retention.ms": "a while",
        "retention.bytes": "-2", "flush.ms": "7",
    }  # fmt: skip
    records = [metadata_records.config(TOPIC, "t", *item) for item in configs.items()]
    node.broker.metadata.append(records, node.now_ms)
    node.restart()
    assert (config(node).retention_ms, config(node).flush_ms) == (604_800_000, 7)
    logged = [each.message for each in caplog.records if "topic t does not count" in each.message]
    assert len(logged) == 2
    assert node.append(batch_of(b"a")).error == ErrorCode.NONE
    assert alter(node, TOPIC, "t", ("flush.ms", SET, "8")) == "NONE"
    assert alter(node, TOPIC, "t", ("no.such", SET, "2")) == "INVALID_CONFIG"
    assert alter(node, TOPIC, "t", ("retention.ms", SET, "5")) == "NONE"
    node.restart()
    assert (config(node).retention_ms, config(node).flush_ms) == (5, 8)
