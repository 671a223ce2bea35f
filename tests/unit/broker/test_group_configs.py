"""What configs of groups may be; tests/unit/server/transcripts/configs.jsonl has what Kafka says."""

from __future__ import annotations

import pytest

from txnkafka.broker.broker_config import BrokerConfig
from txnkafka.broker.group_configs import check_group, shown_group_config
from txnkafka.coordinator.consumer_config import ConsumerGroupConfig


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("earliest", True), (" latest ", True), ("none", False), ("by_duration:PT1H", True),
        ("by_duration:p1dt2h3m4.5s", True), ("by_duration:PT-1H", False), ("by_duration:-PT-1H", True),
        ("by_duration:P", False), ("by_duration:PT", False), ("by_duration:P1DT", False),
        ("by_duration", False),
        ("by_duration:PT0S", True),
    ],
)  # fmt: skip
def test_where_a_share_group_begins(text: str, is_valid: bool) -> None:
    configs = {"share.auto.offset.reset": text}
    if is_valid:
        check_group(BrokerConfig(), configs)
        return
    with pytest.raises(ValueError, match=r"share\.auto\.offset\.reset must be"):
        check_group(BrokerConfig(), configs)


@pytest.mark.parametrize("text", ["50_000", "५००००", "5e4", "", "99999999999", "0x10"])
def test_numbers_are_those_of_java(text: str) -> None:
    with pytest.raises(ValueError, match=r"consumer\.session\.timeout\.ms must be"):
        check_group(BrokerConfig(), {"consumer.session.timeout.ms": text})


def test_values_are_shown_as_they_are_understood() -> None:
    assert shown_group_config("consumer.session.timeout.ms", " +050000 ") == "50000"
    assert shown_group_config("share.renew.acknowledge.enable", " FALSE") == "false"


def test_without_limits_a_config_counts_as_it_is() -> None:
    config = ConsumerGroupConfig().of_group({"consumer.heartbeat.interval.ms": "1"})
    assert config.heartbeat_interval_ms == 1
