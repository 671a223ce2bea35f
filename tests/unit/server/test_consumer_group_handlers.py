"""Handlers of groups of the consumer protocol, through bytes, in all versions (KIP-848)."""

from __future__ import annotations

from typing import Any

from tests.unit.broker.node import Producer
from tests.unit.server.test_group_handlers import with_groups
from tests.unit.server.wire_node import WireNode, topic_id, versions
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages import (
    consumer_group_heartbeat,
    incremental_alter_configs,
    offset_commit,
    offset_fetch,
    txn_offset_commit,
)

NONE = ErrorCode.NONE


def beat(of: WireNode, version: int = 1, **fields: Any) -> Any:
    return of.ask("ConsumerGroupHeartbeat", version, **{"group_id": "g", "member_id": "a", **fields})


def joined(of: WireNode, version: int = 1, **fields: Any) -> Any:
    everything = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("t",), "topic_partitions": ()}
    return beat(of, version, **{"member_epoch": 0, **everything, **fields})


def assigned(answer: Any) -> dict[str, tuple[int, ...]]:
    return {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}


@versions("ConsumerGroupHeartbeat")
def test_consumer_group_heartbeat(version: int) -> None:
    of = with_groups()
    answer = joined(of, version)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (NONE, "a", 2)
    assert (answer.heartbeat_interval_ms, assigned(answer)) == (5_000, {topic_id(of): (0,)})
    owned = consumer_group_heartbeat.TopicPartitions(topic_id=topic_id(of), partitions=(0,))
    alive = beat(of, version, member_epoch=2, topic_partitions=(owned,))
    assert (alive.error_code, alive.assignment) == (NONE, None)
    late = beat(of, version, member_epoch=1)
    assert (late.error_code, late.member_id) == (ErrorCode.FENCED_MEMBER_EPOCH, None)
    assert "smaller member epoch (1)" in late.error_message
    nameless = joined(of, version, member_id="")
    assert nameless.error_code == (ErrorCode.INVALID_REQUEST if version >= 1 else NONE)
    left = beat(of, version, member_epoch=-1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (NONE, -1, 0)


def test_a_topic_that_is_named_twice_owns_the_partitions_of_both_lists() -> None:
    of = with_groups(partitions=2)
    joined(of)
    joined(of, member_id="b")
    of.wait(1_000)  # group.consumer.assignment.interval.ms
    told = beat(of, member_epoch=2)
    (kept,) = assigned(told)[topic_id(of)]
    owned = [
        consumer_group_heartbeat.TopicPartitions(topic_id=topic_id(of), partitions=(number,))
        for number in (1 - kept, kept)
    ]
    assert beat(of, member_epoch=2, topic_partitions=tuple(owned)).member_epoch == 2, "it has both still"
    assert beat(of, member_epoch=2, topic_partitions=(owned[1],)).member_epoch == 3


def test_the_configs_of_a_group_are_in_effect_with_the_next_heartbeat() -> None:
    of = with_groups()
    joined(of)
    change = incremental_alter_configs.AlterableConfig(
        name="consumer.heartbeat.interval.ms", config_operation=0, value="7000"
    )
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=32, resource_name="g", configs=(change,)
    )
    (changed,) = of.ask("IncrementalAlterConfigs", 1, resources=(resource,)).responses
    assert (changed.error_code, beat(of, member_epoch=2).heartbeat_interval_ms) == (NONE, 7_000)
    of.restart()
    assert beat(of, member_epoch=2).heartbeat_interval_ms == 7_000


def test_a_pattern_is_resolved_with_the_next_heartbeat() -> None:
    of = with_groups()
    assert joined(of, subscribed_topic_names=None, subscribed_topic_regex="t|u").member_epoch == 1
    of.wait(1)
    assert assigned(beat(of, member_epoch=1)) == {topic_id(of): (0,)}
    bad = joined(of, subscribed_topic_regex="(")
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@versions("ConsumerGroupDescribe")
def test_consumer_group_describe(version: int) -> None:
    of = with_groups()
    joined(of, instance_id="i", rack_id="r")
    asked = ("g", "nobody", "")
    found, unknown, nameless = of.ask("ConsumerGroupDescribe", version, group_ids=asked).groups
    assert (found.error_code, found.group_state, found.group_epoch) == (NONE, "Stable", 2)
    assert (found.assignment_epoch, found.assignor_name) == (2, "uniform")
    (member,) = found.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("a", "i", "r")
    assert (member.member_epoch, member.client_id, member.client_host) == (2, "test", "/localhost")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (("t",), "")
    for assignment in (member.assignment, member.target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_id, topic.topic_name, topic.partitions) == (topic_id(of), "t", (0,))
    assert member.member_type == (1 if version >= 1 else -1)
    assert (unknown.error_code, unknown.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND, "Group nobody not found.",
    )  # fmt: skip
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    assert of.ask("ConsumerGroupDescribe", version).groups == ()


def test_a_classic_group_is_not_described() -> None:
    of = with_groups()
    topic = offset_commit.OffsetCommitRequestTopic(
        name="t", partitions=(offset_commit.OffsetCommitRequestPartition(committed_offset=1),)
    )
    of.ask("OffsetCommit", 8, group_id="g", topics=(topic,))
    (found,) = of.ask("ConsumerGroupDescribe", 1, group_ids=("g",)).groups
    assert found.error_message == "Group g is not a consumer group."
    joined(of)
    (old,) = of.ask("DescribeGroups", 6, groups=("g",)).groups
    assert (old.error_code, old.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert old.error_message == "Group g is not a classic group."


def test_a_cluster_without_the_consumer_protocol() -> None:
    of = with_groups()
    joined(of)
    of.broker.image.features["group.version"] = 0
    assert joined(of).error_code == ErrorCode.UNSUPPORTED_VERSION
    (found,) = of.ask("ConsumerGroupDescribe", 1, group_ids=("g",)).groups
    assert (found.group_id, found.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)


def test_list_groups() -> None:
    of = with_groups()
    joined(of)
    (found,) = of.ask("ListGroups", 5, types_filter=("Consumer",), states_filter=("stable",)).groups
    assert (found.group_id, found.protocol_type, found.group_state, found.group_type) == (
        "g", "consumer", "Stable", "consumer",
    )  # fmt: skip
    assert of.ask("ListGroups", 5, types_filter=("classic",)).groups == ()


def commit(of: WireNode, version: int, epoch: int, member_id: str = "a") -> int:
    named = {"topic_id": topic_id(of)} if version >= 10 else {"name": "t"}
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=version)
    topic = offset_commit.OffsetCommitRequestTopic(partitions=(part,), **named)
    identity = {"generation_id_or_member_epoch": epoch, "member_id": member_id}
    answer = of.ask("OffsetCommit", version, group_id="g", topics=(topic,), **identity)
    return int(answer.topics[0].partitions[0].error_code)


def fetched(of: WireNode, version: int, **member: Any) -> tuple[int, list[int]]:
    named = {"topic_id": topic_id(of)} if version >= 10 else {"name": "t"}
    topic = offset_fetch.OffsetFetchRequestTopics(partition_indexes=(0,), **named)
    group = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=(topic,), **member)
    (answer,) = of.ask("OffsetFetch", version, groups=(group,)).groups
    return answer.error_code, [part.committed_offset for each in answer.topics for part in each.partitions]


def test_offsets_of_members() -> None:
    of = with_groups()
    joined(of)
    stale, unknown = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(of, 8, 2) == ErrorCode.UNSUPPORTED_VERSION
    for version in (9, 10):
        assert [commit(of, version, epoch) for epoch in (1, 2, 3)] == [stale, NONE, stale]
        assert commit(of, version, 2, "b") == commit(of, version, -1, "") == unknown
        assert fetched(of, version, member_id="a", member_epoch=2) == (NONE, [version])
        assert fetched(of, version, member_id="a", member_epoch=1) == (stale, [])
        assert fetched(of, version, member_id="b", member_epoch=2) == (unknown, [])
        assert fetched(of, version) == (NONE, [version])


def test_offsets_of_members_with_a_transaction() -> None:
    of = with_groups()
    joined(of)
    identity = Producer(of, "x").identity
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(committed_offset=1)
    fields = {
        "transactional_id": "x", "group_id": "g",
        "producer_id": identity.producer_id, "producer_epoch": identity.producer_epoch,
    }  # fmt: skip

    def error(member_id: str, epoch: int, version: int = 5) -> int:
        named = {"topic_id": of.broker.image.topics["t"].topic_id} if version >= 6 else {"name": "t"}
        topic = txn_offset_commit.TxnOffsetCommitRequestTopic(**named, partitions=(part,))
        member = {"member_id": member_id, "generation_id_or_member_epoch": epoch}
        answer = of.ask("TxnOffsetCommit", version, **fields, **member, topics=(topic,))
        return int(answer.topics[0].partitions[0].error_code)

    assert [error("a", epoch) for epoch in (1, 3, 2)] == [ErrorCode.ILLEGAL_GENERATION] * 2 + [NONE]
    assert [error("a", epoch, 6) for epoch in (1, 3, 2)] == [ErrorCode.STALE_MEMBER_EPOCH] * 2 + [NONE]
    assert error("b", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert error("", -1) == NONE
