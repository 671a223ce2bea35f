"""What configs of groups may be; tests/unit/server/transcripts/configs.jsonl has what Kafka says."""

from __future__ import annotations

import re

import pytest

from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.config.group_settings import check_group, shown_group_config
from txnkafka.coordinator.group.consumer.consumer_config import ConsumerGroupConfig


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


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("consumer.assignor.offload.enable", ("true", " FALSE "), ("yes", "")),
        ("errors.deadletterqueue.copy.record.enable", ("true",), ("1",)),
        ("errors.deadletterqueue.topic.name", ("", "a", "_a"), ("__a", " __a")),
        ("streams.assignor.name", ("sticky", " sticky "), ("", "Sticky", "other")),
        ("streams.rack.aware.assignment.tags", ("", "a", " a , b "), ("a,a", "a,", ",")),
        ("streams.task.offset.interval.ms", ("15000", "2147483647"), ("14999", "2147483648")),
        ("streams.num.warmup.replicas", ("0", "20"), ("-1", "21")),
        ("streams.acceptable.recovery.lag", ("0", str(2**63 - 1)), ("-1", str(2**63))),
    ],
)
def test_configs_of_kafka_4_4(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    for text in good:
        check_group(BrokerConfig(), {name: text})
    for text in bad:
        with pytest.raises(ValueError, match=re.escape(f"{name} must be")):
            check_group(BrokerConfig(), {name: text})


def test_values_are_shown_as_they_are_understood() -> None:
    assert shown_group_config("consumer.session.timeout.ms", " +050000 ") == "50000"
    assert shown_group_config("share.renew.acknowledge.enable", " FALSE") == "false"
    assert shown_group_config("streams.rack.aware.assignment.tags", " a , b ") == "a,b"
    assert shown_group_config("consumer.assignor.offload.enable", " TRUE ") == " TRUE "


def test_without_limits_a_config_counts_as_it_is() -> None:
    config = ConsumerGroupConfig().of_group({"consumer.heartbeat.interval.ms": "1"})
    assert config.heartbeat_interval_ms == 1
