"""What is named a thousand times in one request is described once: an answer is not larger than the state."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.server.test_group_handlers import member, with_groups
from tests.unit.server.wire_node import WireNode
from txnkafka.wire.messages import describe_configs, describe_producers, offset_fetch

TIMES = 1_000


def names(of: WireNode, api: str, version: int, field: str, found: str, value: Any, **fields: Any) -> int:
    """How many results there are for a value that is in the request very often."""
    return len(getattr(of.ask(api, version, **{field: (value,) * TIMES}, **fields), found))


@pytest.mark.parametrize("version", [0, 6])
def test_groups(version: int) -> None:
    of = with_groups()
    member(of)
    assert names(of, "DescribeGroups", version, "groups", "groups", "g") == 1
    assert names(of, "ConsumerGroupDescribe", 1, "group_ids", "groups", "g") == 1


def test_transactional_ids() -> None:
    of = with_groups()
    assert names(of, "DescribeTransactions", 0, "transactional_ids", "transaction_states", "x") == 1


def test_all_offsets_of_a_group() -> None:
    of = with_groups()
    every = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)
    assert names(of, "OffsetFetch", 8, "groups", "groups", every) == 1
    some = offset_fetch.OffsetFetchRequestGroup(
        group_id="g", topics=(offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    )
    found = of.ask("OffsetFetch", 8, groups=(some, every, some, every)).groups
    assert [len(each.topics) for each in found] == [1, 0, 1]


def test_producers_of_a_partition() -> None:
    of = with_groups()
    topic = describe_producers.TopicRequest(name="t", partition_indexes=(0, 0))
    answer = of.ask("DescribeProducers", 0, topics=(topic,) * TIMES)
    assert [[each.partition_index for each in found.partitions] for found in answer.topics] == [[0]]


def test_configs() -> None:
    of = with_groups()
    topic = describe_configs.DescribeConfigsResource(resource_type=2, resource_name="t")
    assert names(of, "DescribeConfigs", 4, "resources", "results", topic) == 1
