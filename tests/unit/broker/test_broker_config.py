"""Settings of a broker by Kafka's names."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import txnkafka
from txnkafka.broker.config.broker_config import BrokerConfig, check_topic
from txnkafka.broker.config.config_names import TOPIC_SYNONYMS, WITHOUT_EFFECT
from txnkafka.broker.config.group_settings import group_config
from txnkafka.config import config_defs
from txnkafka.coordinator.group.consumer.consumer_config import MigrationPolicy


def test_nothing_is_the_default() -> None:
    assert BrokerConfig.of({}) == BrokerConfig()


def test_settings_of_the_broker() -> None:
    config = BrokerConfig.of({"num.partitions": " 7 ", "auto.create.topics.enable": "False"})
    assert (config.num_partitions, config.auto_create_topics_enable) == (7, False)


@pytest.mark.parametrize(
    ("settings", "milliseconds"),
    [
        ({"log.retention.ms": "5"}, 5),
        ({"log.retention.minutes": "5"}, 300_000),
        ({"log.retention.hours": "5"}, 18_000_000),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.hours": "5", "log.retention.minutes": "6", "log.retention.ms": "7"}, 7),
    ],
)
def test_settings_that_topics_have_too(settings: dict[str, str], milliseconds: int) -> None:
    assert BrokerConfig.of(settings).log_config({}).retention_ms == milliseconds
    assert BrokerConfig.of(settings).log_config({"retention.ms": "9"}).retention_ms == 9


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("min.insync.replicas", "1", "0"),
        ("min.insync.replicas", "2147483647", "2147483648"),
        ("unclean.leader.election.enable", "TRUE", "maybe"),
        ("leader.replication.throttled.replicas", "0:1,1:1", "x"),
        ("local.retention.ms", "-2", "-3"),
        ("local.retention.bytes", "9223372036854775807", "9223372036854775808"),
        ("remote.storage.enable", "false", "true"),
    ],
)
def test_topic_settings_without_effect_are_checked(name: str, good: str, bad: str) -> None:
    config = BrokerConfig()
    assert config.log_config({name: good}) == config.log_config({})
    check_topic(config, {name: good})
    with pytest.raises(ValueError, match=f"{name} cannot be '{bad}'"):
        check_topic(config, {name: bad})
    # a topic that has it is served
    assert config.log_config({name: bad}) == config.log_config({})


@pytest.mark.parametrize("text", ["compact,compact", "delete, delete", "delete,compact,delete"])
def test_a_policy_may_be_named_twice(text: str) -> None:
    """As in Apache Kafka: tests/side_by_side/configs.py."""
    config = BrokerConfig.of({"log.cleanup.policy": text})
    check_topic(config, {"cleanup.policy": text})
    assert config.log_config({}).compact == ("compact" in text)
    assert config.log_config({"cleanup.policy": " compact , compact"}).cleanup_policy == "compact"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("max.connections.per.ip", "1", "0"),
        ("log.retention.ms", "1", "0"),
        ("log.retention.ms", "-5", "x"),
        ("log.retention.minutes", "-1", "0"),
        ("log.retention.hours", "1", "0"),
        ("log.segment.bytes", "1048576", "1048575"),
        ("log.cleaner.dedupe.buffer.size", "1048577", "1048576"),
    ],
)
def test_what_kafka_does_not_start_with(name: str, good: str, bad: str) -> None:
    """The rules for a setting of the broker are not always those for the same setting of a topic."""
    BrokerConfig.of({name: good})
    with pytest.raises(ValueError, match=name):
        BrokerConfig.of({name: bad})
    with pytest.raises(ValueError, match=name):
        BrokerConfig().changed({name: bad})


@pytest.mark.parametrize("name", ["offsets.topic.num.partitions", "transaction.state.log.num.partitions"])
def test_the_topics_of_the_coordinators_are_none_that_cannot_be_created(name: str) -> None:
    """As a topic of a request cannot be: the controller of Kafka does not create them either."""
    BrokerConfig.of({name: "10000"})
    with pytest.raises(ValueError, match=f"{re.escape(name)} must be 1 to 10000, not 10001"):
        BrokerConfig.of({name: "10001"})


def test_the_interval_of_flushes_has_two_names() -> None:
    names = {"log.flush.scheduler.interval.ms": "7", "log.flush.interval.ms": "5"}
    assert BrokerConfig.of(names).log_config({}).flush_ms == 5
    del names["log.flush.interval.ms"]
    config = BrokerConfig.of(names)
    assert config.log_config({}).flush_ms == 7
    assert config.changed({"log.flush.interval.ms": "3"}).log_config({}).flush_ms == 3


@pytest.mark.parametrize(
    "name",
    [
        "queued.max.request.bytes", "log.dir.failure.timeout.ms", "group.share.max.size",
        "group.streams.max.size", "share.coordinator.threads", "controller.quorum.retry.backoff.ms",
    ],
)  # fmt: skip
def test_settings_of_kafka_that_mean_nothing_here(name: str) -> None:
    assert BrokerConfig.of({name: "1"}) == BrokerConfig()


def test_every_negative_retention_time_means_for_ever() -> None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        assert BrokerConfig.of({name: "-5"}).log_config({}).retention_ms == -1


def test_compaction_lags_that_contradict_each_other() -> None:
    """Else no topic could be created."""
    lags = {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"}
    with pytest.raises(ValueError, match=r"min\.compaction\.lag\.ms \(9\) is above"):
        BrokerConfig.of(lags)
    BrokerConfig.of({**lags, "log.cleaner.max.compaction.lag.ms": "9"})


TEXTS = {
    "log.cleanup.policy": "compact",
    "log.message.timestamp.type": "LogAppendTime",
    "compression.type": "lz4",
    "log.preallocate": "true",
    "log.segment.bytes": "1048576",
    "log.index.size.max.bytes": "64",
    "transaction.partition.verification.enable": "false",
}


@pytest.mark.parametrize("name", TOPIC_SYNONYMS)
def test_every_synonym_is_a_setting_of_a_log(name: str) -> None:
    config = BrokerConfig.of({name: TEXTS.get(name, "1")})
    assert config.log_config({}) != BrokerConfig().log_config({})


def test_what_has_no_effect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        configs = {"num.io.threads": "8", "process.roles": "broker,controller"}
        assert BrokerConfig.of(configs) == BrokerConfig()
    assert "settings without effect on one node: num.io.threads=8, process.roles=broker,controller" in (
        caplog.text
    )
    assert len(caplog.records) == 1


PACKAGE = Path(txnkafka.__file__).parent
OF_TOPICS = {"topic_defaults", "message_max_bytes"}  # they are in the config of each log


@pytest.mark.parametrize("name", sorted(BrokerConfig.__dataclass_fields__.keys() - OF_TOPICS))
def test_each_setting_is_looked_at(name: str) -> None:
    """What has no effect is in the list of which serve warns."""
    sources = (path.read_text() for path in PACKAGE.rglob("*.py"))
    assert any(re.search(rf"\b(config|self)\.{name}\b", source) for source in sources)


def test_no_name_has_two_meanings() -> None:
    names = config_defs(BrokerConfig).keys()
    assert not WITHOUT_EFFECT & TOPIC_SYNONYMS.keys()
    assert not names & WITHOUT_EFFECT
    assert not names & TOPIC_SYNONYMS.keys()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("num.partition", "no setting num.partition; did you mean num.partitions?"),
        ("log.retention.hour", "did you mean log.retention.hours?"),
        ("num_partitions", "no setting num_partitions; did you mean num.partitions?"),
        ("xyzzy", "no setting xyzzy$"),
        ("topic.defaults", "no setting topic.defaults"),
        ("log.dirs", "log.dirs is set by --data"),
        ("listeners", "listeners is set by --listen"),
        ("ssl.keystore.location", "encryption and authentication are not supported"),
        ("authorizer.class.name", "ACLs are not supported"),
        ("connections.max.reauth.ms", "encryption and authentication are not supported"),
        ("principal.builder.class", "encryption and authentication are not supported"),
        ("remote.log.storage.system.enable", "tiered storage is not supported"),
        ("log.local.retention.ms", "tiered storage is not supported"),
        ("max.connections.per.ip.overrides", "is for all addresses"),
    ],
)
def test_names_that_are_refused(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        BrokerConfig.of({name: "1"})


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("num.partitions", "0", "num.partitions must be 1 to"),
        ("num.partitions", "many", "num.partitions must be a number, not 'many'"),
        ("auto.create.topics.enable", "yes", "must be true or false, not 'yes'"),
        ("log.retention.hours", "x", "log.retention.hours must be a number"),
        ("log.cleanup.policy", "keep", "cleanup.policy must be one of"),
    ],
)
def test_values_that_are_refused(name: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        BrokerConfig.of({name: text})


@pytest.mark.parametrize(
    ("configs", "told"),
    [
        ({"group.consumer.heartbeat.interval.ms": "4000"}, "must be between"),
        ({"group.consumer.session.timeout.ms": "70000"}, "must be between"),
        ({"group.consumer.assignment.interval.ms": "20000"}, "must be between"),
        ({"group.consumer.assignors": "uniform,uniform"}, "group.consumer.assignors"),
        ({"group.consumer.assignors": "org.example.Own"}, "group.consumer.assignors"),
        ({"group.consumer.migration.policy": "sometimes"}, "group.consumer.migration.policy"),
        (
            {
                "group.consumer.session.timeout.ms": "5000",
                "group.consumer.min.session.timeout.ms": "5000",
            },
            "less than the session timeout",
        ),
    ],
)
def test_settings_of_groups_that_contradict_each_other(configs: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        BrokerConfig.of(configs)


def test_settings_of_groups_that_are_texts() -> None:
    config = BrokerConfig.of(
        {"group.consumer.assignors": "range, uniform", "group.consumer.migration.policy": "UPGRADE"}
    )
    found = group_config(config).consumer
    assert (found.assignors, found.migration_policy) == (("range", "uniform"), MigrationPolicy.UPGRADE)
