"""Settings of topics, brokers and groups."""

from __future__ import annotations

import pytest

from txnkafka.client.admin import (
    Admin,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    OpType,
)
from txnkafka.errors import KafkaError, UnknownTopicOrPartitionError

ORDERS = ConfigResource(ConfigResourceType.TOPIC, "orders")
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
GROUP = ConfigResource(ConfigResourceType.GROUP, "readers")


def value(admin: Admin, resource: ConfigResource, name: str) -> str | None:
    return admin.describe_configs([resource], names=[name])[resource][name].value


def test_settings_are_changed_and_reset(admin: Admin) -> None:
    admin.create_topic("orders")
    admin.incremental_alter_configs({ORDERS: {"retention.ms": 1000, "cleanup.policy": "compact"}})
    (described,) = admin.describe_configs([ORDERS]).values()
    assert described["retention.ms"].value == "1000"
    assert described["retention.ms"].source is ConfigSource.TOPIC_CONFIG
    assert not described["retention.ms"].is_default
    assert described["segment.ms"].is_default
    admin.incremental_alter_configs({ORDERS: {"retention.ms": None}})
    assert value(admin, ORDERS, "retention.ms") == "604800000"
    assert value(admin, ORDERS, "cleanup.policy") == "compact"


def test_lists_are_appended_to_and_subtracted_from(admin: Admin) -> None:
    admin.create_topic("orders")
    append = AlterConfigOp("cleanup.policy", "compact", OpType.APPEND)
    admin.incremental_alter_configs({ORDERS: [append]})
    assert value(admin, ORDERS, "cleanup.policy") == "delete,compact"
    admin.incremental_alter_configs({ORDERS: [append._replace(value="delete", op_type=OpType.SUBTRACT)]})
    assert value(admin, ORDERS, "cleanup.policy") == "compact"


def test_changes_are_only_validated(admin: Admin) -> None:
    admin.create_topic("orders")
    admin.incremental_alter_configs({ORDERS: {"retention.ms": 5}}, validate_only=True)
    assert value(admin, ORDERS, "retention.ms") == "604800000"
    with pytest.raises(KafkaError, match=r"^topic orders: .*retention\.ms.*\(INVALID_CONFIG\)"):
        admin.incremental_alter_configs({ORDERS: {"retention.ms": "soon"}}, validate_only=True)


def test_a_broker_and_all_brokers(admin: Admin) -> None:
    admin.incremental_alter_configs({ALL_BROKERS: {"log.retention.ms": 7000}})
    assert value(admin, ALL_BROKERS, "log.retention.ms") == "7000"
    (entry,) = admin.describe_configs([BROKER], names=["log.retention.ms"], include_synonyms=True)[
        BROKER
    ].values()
    assert entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert entry.synonyms[0].name == "log.retention.ms"


def test_documentation_comes_on_request(admin: Admin) -> None:
    admin.create_topic("orders")
    described = admin.describe_configs([ORDERS], names=["retention.ms"], include_documentation=True)
    assert described[ORDERS]["retention.ms"].documentation
    assert described[ORDERS]["retention.ms"].type > 0


def test_a_group_has_settings(admin: Admin) -> None:
    admin.incremental_alter_configs({GROUP: {"consumer.session.timeout.ms": 50_000}})
    assert value(admin, GROUP, "consumer.session.timeout.ms") == "50000"


def test_a_missing_topic(admin: Admin) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=r"^topic orders: "):
        admin.describe_configs([ORDERS])
    with pytest.raises(UnknownTopicOrPartitionError, match=r"^topic orders: "):
        admin.incremental_alter_configs({ORDERS: {"retention.ms": 1}})
