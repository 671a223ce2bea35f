"""What administrators change: each API in each of its versions on a broker in memory, through bytes."""

from __future__ import annotations

from typing import Any

from tests.unit.server.wire_node import WireNode, node, versions
from txnkafka.error_codes import ErrorCode
from txnkafka.server.config_entries import advertised_entry
from txnkafka.server.listeners import Endpoint
from txnkafka.wire.messages import alter_configs, create_partitions, describe_configs
from txnkafka.wire.messages import incremental_alter_configs as incremental


def more(name: str, count: int, *replicas: tuple[int, ...]) -> create_partitions.CreatePartitionsTopic:
    assignments = tuple(create_partitions.CreatePartitionsAssignment(broker_ids=ids) for ids in replicas)
    return create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)


@versions("CreatePartitions")
def test_create_partitions(version: int) -> None:
    of = node()
    for name in ("u", "v", "w"):
        of.create(name, 2)
    of.request(of.broker.transactions.find, "x")
    of.settle()
    topics = (
        more("t", 3), more("u", 2), more("v", 1), more("w", 4, (1,), (1,)), more("missing", 2),
        more("twice", 1), more("twice", 1), more("__transaction_state", 9),
    )  # fmt: skip
    answer = of.ask("CreatePartitions", version, topics=topics)
    assert [(each.name, ErrorCode(each.error_code).name) for each in answer.results] == [
        ("twice", "INVALID_REQUEST"),
        ("t", "NONE"),
        ("u", "INVALID_PARTITIONS"),
        ("v", "INVALID_PARTITIONS"),
        ("w", "NONE"),
        ("missing", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("__transaction_state", "INVALID_TOPIC_EXCEPTION"),
    ]
    assert [each.error_message is None for each in answer.results].count(True) == 2
    assert {name: len(of.broker.image.topics[name].partitions) for name in "tuvw"} == {
        "t": 3, "u": 2, "v": 2, "w": 4,
    }  # fmt: skip


@versions("CreatePartitions")
def test_create_partitions_only_to_validate(version: int) -> None:
    of = node()
    for count, expected in ((2, ErrorCode.NONE), (1, ErrorCode.INVALID_PARTITIONS)):
        answer = of.ask("CreatePartitions", version, topics=(more("t", count),), validate_only=True)
        (result,) = answer.results
        assert result.error_code == expected
    assert len(of.broker.image.topics["t"].partitions) == 1
    assert of.ask("CreatePartitions", version, topics=()).results == ()


def test_create_partitions_with_replicas() -> None:
    of = node()
    refused = (more("t", 2, (2,)), more("t", 2, (1, 1)), more("t", 2, ()), more("t", 3, (1,)))
    wanted = (*refused, more("t", 12_000))
    errors = [of.ask("CreatePartitions", 3, topics=(each,)).results[0].error_code for each in wanted]
    assert errors == [ErrorCode.INVALID_REPLICA_ASSIGNMENT] * 4 + [ErrorCode.POLICY_VIOLATION]


SET, DELETE, APPEND, SUBTRACT = range(4)


def described(of: WireNode, kind: int, name: str) -> dict[str, Any]:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    (result,) = of.ask("DescribeConfigs", 4, resources=(resource,), include_synonyms=True).results
    return {each.name: each for each in result.configs}


def errors(answer: Any) -> list[tuple[int, str, str]]:
    return [
        (each.resource_type, each.resource_name, ErrorCode(each.error_code).name) for each in answer.responses
    ]


@versions("AlterConfigs")
def test_alter_configs(version: int) -> None:
    def resource(kind: int, name: str, **configs: str | None) -> alter_configs.AlterConfigsResource:
        rows = tuple(
            alter_configs.AlterableConfig(name=key.replace("_", "."), value=configs[key]) for key in configs
        )
        return alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)

    of = WireNode()
    of.create("t", 1, retention_ms="5")
    answer = of.ask(
        "AlterConfigs", version,
        resources=(
            resource(2, "t", flush_ms="7"), resource(2, "missing", flush_ms="7"),
            resource(4, "1", num_partitions="2"), resource(2, "u", flush_ms=None), resource(8, "1"),
            resource(32, "g"), resource(99, "x"), resource(2, "v"), resource(2, "v"),
        ),
    )  # fmt: skip
    assert errors(answer) == [
        (2, "t", "NONE"), (2, "missing", "UNKNOWN_TOPIC_OR_PARTITION"), (4, "1", "INVALID_REQUEST"),
        (2, "u", "INVALID_REQUEST"), (8, "1", "INVALID_REQUEST"), (32, "g", "NONE"),
        (99, "x", "INVALID_REQUEST"), (2, "v", "INVALID_REQUEST"), (2, "v", "INVALID_REQUEST"),
    ]  # fmt: skip
    assert of.broker.image.topic_configs("t") == {"flush.ms": "7"}
    of.ask("AlterConfigs", version, resources=(resource(2, "t"),), validate_only=True)
    assert of.broker.image.topic_configs("t") == {"flush.ms": "7"}
    assert of.ask("AlterConfigs", version, resources=()).responses == ()


def changes(kind: int, name: str, *rows: tuple[str, int, str | None]) -> incremental.AlterConfigsResource:
    configs = tuple(
        incremental.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in rows
    )
    return incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


@versions("IncrementalAlterConfigs")
def test_incremental_alter_configs(version: int) -> None:
    of = WireNode(topic_defaults={"retention.ms": "9"})
    of.create("t", 1, retention_ms="5")
    answer = of.ask(
        "IncrementalAlterConfigs", version,
        resources=(
            changes(2, "t", ("cleanup.policy", APPEND, "compact"), ("retention.ms", DELETE, None)),
            changes(2, "odd", ("flush.ms", 9, "1")),
            changes(2, "twice", ("flush.ms", SET, "1"), ("flush.ms", SET, "2")),
            changes(4, "", ("log.retention.ms", SET, "8")),
            changes(4, "1", ("log.retention.ms", SET, "7")),
        ),
    )  # fmt: skip
    assert errors(answer) == [
        (2, "t", "NONE"), (2, "odd", "INVALID_REQUEST"), (2, "twice", "INVALID_REQUEST"), (4, "", "NONE"),
        (4, "1", "NONE"),
    ]  # fmt: skip
    topic = described(of, 2, "t")
    assert (topic["cleanup.policy"].value, topic["cleanup.policy"].config_source) == ("delete,compact", 1)
    levels = [("7", 2), ("8", 3), ("9", 4)]
    for found in (topic["retention.ms"], described(of, 4, "1")["log.retention.ms"]):
        assert (found.value, found.config_source) == ("7", 2)
        assert [(each.name, each.value, each.source) for each in found.synonyms] == [
            *[("log.retention.ms", *level) for level in levels], ("log.retention.hours", "168", 5),
        ]  # fmt: skip
    assert {key: each.value for key, each in described(of, 4, "").items()} == {
        "log.retention.ms": "8", "min.insync.replicas": "1",
    }  # fmt: skip
    of.ask(
        "IncrementalAlterConfigs", version,
        resources=(changes(2, "t", ("retention.ms", SET, "4")),), validate_only=True,
    )  # fmt: skip
    assert of.broker.image.topic_configs("t") == {"cleanup.policy": "delete,compact"}


def test_where_clients_are_sent_is_a_setting() -> None:
    found = described(node(), 4, "1")["advertised.listeners"]
    assert (found.value, found.config_source, found.read_only) == ("PLAINTEXT://localhost:9092", 4, True)
    endpoints = [Endpoint("PLAINTEXT", "::1", 9092), Endpoint("MAPPED", "kafka.example", 19092)]
    assert advertised_entry(endpoints).value == "PLAINTEXT://[::1]:9092,MAPPED://kafka.example:19092"


def test_settings_that_stand_for_each_other() -> None:
    """What is changed by one name hides what another one has said at the start."""
    of = WireNode(given={"log.retention.hours": "3"}, topic_defaults={"retention.ms": "10800000"})
    before = described(of, 4, "1")
    assert (before["log.retention.hours"].value, before["log.retention.hours"].config_source) == ("3", 4)
    assert (before["log.retention.ms"].value, before["log.retention.ms"].read_only) == (None, False)
    assert (before["log.retention.minutes"].value, before["log.retention.hours"].read_only) == (None, True)
    of.ask("IncrementalAlterConfigs", 1, resources=(changes(4, "1", ("log.retention.ms", SET, "5")),))
    after = described(of, 4, "1")
    assert (after["log.retention.ms"].value, after["log.retention.ms"].config_source) == ("5", 2)
    assert after["log.retention.hours"].value == "168"
