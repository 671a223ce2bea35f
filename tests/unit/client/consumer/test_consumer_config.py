"""Settings of consumers."""

from __future__ import annotations

from typing import Any

import pytest

from txnkafka.client.client_config import read_config
from txnkafka.client.consumer.consumer_config import ConsumerConfig, reset_duration_ms


def read(**given: Any) -> ConsumerConfig:
    return read_config(ConsumerConfig, given)


def test_defaults_are_kafkas_except_the_isolation_level() -> None:
    config = read()
    assert config.isolation_level == "read_committed"
    assert config.isolation == 1
    assert read(isolation_level="read_uncommitted").isolation == 0
    assert (config.max_poll_records, config.auto_offset_reset, config.group_protocol) == (
        500,
        "latest",
        "classic",
    )
    assert config.assignors == ("range", "cooperative-sticky")


def test_javas_class_names_are_assignors() -> None:
    name = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert read(partition_assignment_strategy=f"{name}, sticky,{name}").assignors == (
        "cooperative-sticky",
        "sticky",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partition_assignment_strategy": "fair"}, "fair is no assignor"),
        ({"partition_assignment_strategy": ""}, "nothing is no assignor"),
        ({"auto_offset_reset": "first"}, "auto.offset.reset must be earliest"),
        ({"heartbeat_interval_ms": 45_000}, "must be below session.timeout.ms"),
        ({"group_remote_assignor": "range"}, "is for group.protocol=consumer"),
        ({"isolation_level": "committed"}, "isolation.level must be one of"),
        ({"max_poll_records": 0}, "max.poll.records must be 1 to"),
    ],
)
def test_a_wrong_setting_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(**given)


@pytest.mark.parametrize(
    ("policy", "duration"),
    [("by_duration:PT1H30M", 5_400_000), ("by_duration:P1DT0.5S", 86_400_500), ("latest", None)],
)
def test_a_reset_may_have_a_duration(policy: str, duration: int | None) -> None:
    assert reset_duration_ms(policy) == duration


@pytest.mark.parametrize(
    "policy", ["by_duration:", "by_duration:P", "by_duration:1h", "PT1H", "by_duration:-PT1H"]
)
def test_a_wrong_duration_is_refused(policy: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        reset_duration_ms(policy)
