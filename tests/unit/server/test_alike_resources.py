"""What is said of many resources that have set the same is made once, and is right for each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.server.wire_node import WireNode, node
from txnkafka.server.config_entries import GROUP, TOPIC, group_entries, topic_entries
from txnkafka.server.handlers import create_topics as creating
from txnkafka.server.handlers import describe_configs as describing
from txnkafka.wire.messages import create_topics, describe_configs, incremental_alter_configs

RETENTION = "retention.ms"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What the resources have set whose rows were made, in their order."""
    of: list[dict[str, str]] = []

    def counted(make: Any) -> Any:
        return lambda configs, own: of.append(dict(own)) or make(configs, own)

    monkeypatch.setattr(describing, "topic_entries", counted(topic_entries))
    monkeypatch.setattr(describing, "group_entries", counted(group_entries))
    monkeypatch.setattr(creating, "topic_entries", counted(topic_entries))
    return of


def described(of: WireNode, *resources: tuple[int, str], keys: tuple[str, ...] | None = None) -> list[Any]:
    wanted = tuple(
        describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=keys
        )
        for kind, name in resources
    )
    results = of.ask("DescribeConfigs", 4, resources=wanted, include_synonyms=True).results
    return [{each.name: each.value for each in result.configs} for result in results]


def test_descriptions(made: list[dict[str, str]]) -> None:
    of = node()
    for name in ("u", "v"):
        of.create(name, 1, retention_ms="7")
    change = incremental_alter_configs.AlterableConfig(name="consumer.session.timeout.ms", value="50000")
    group = incremental_alter_configs.AlterConfigsResource(
        resource_type=GROUP, resource_name="h", configs=(change,)
    )
    of.ask("IncrementalAlterConfigs", 1, resources=(group,))
    topics = described(of, *((TOPIC, name) for name in "tuv"))
    assert [each[RETENTION] for each in topics] == ["604800000", "7", "7"]
    groups = described(of, *((GROUP, name) for name in "ghi"))
    assert [each["consumer.session.timeout.ms"] for each in groups] == ["45000", "50000", "45000"]
    assert made == [{}, {RETENTION: "7"}, {}, {"consumer.session.timeout.ms": "50000"}]
    (one,) = described(of, (TOPIC, "u"), keys=(RETENTION, "unknown"))
    assert one == {RETENTION: "7"}


def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    of = node()
    (group,) = described(of, (GROUP, "g"))
    monkeypatch.setattr(describing, "MOST_ROWS", 2 * len(group) + 1)
    groups = [(GROUP, name) for name in "ghi"]
    assert described(of, *groups) == [group, group, {}]
    assert [len(each) for each in described(of, *groups, keys=tuple(group)[:2])] == [2, 2, 2]


def test_created_topics(made: list[dict[str, str]]) -> None:
    def topic(name: str, *configs: tuple[str, str]) -> create_topics.CreatableTopic:
        rows = tuple(create_topics.CreatableTopicConfig(name=key, value=value) for key, value in configs)
        return create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=rows)

    topics = topic("a"), topic("b", (RETENTION, "7")), topic("c"), topic("d", (RETENTION, "7"))
    answer = WireNode().ask("CreateTopics", 7, topics=topics, validate_only=True)
    found = {each.name: {row.name: row.value for row in each.configs} for each in answer.topics}
    assert [found[name][RETENTION] for name in "abcd"] == ["604800000", "7", "604800000", "7"]
    assert made == [{}, {RETENTION: "7"}]
