"""Handlers of groups and their offsets, through bytes, in all versions."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.unit.broker.node import Producer
from tests.unit.server.wire_node import WireNode, node, topic_id, versions
from txnkafka.coordinator.group.classic.classic_group import ClassicGroup
from txnkafka.coordinator.group.group_requests import Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.messages import (
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
    txn_offset_commit,
)

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def with_groups(**configs: Any) -> WireNode:
    """A node whose coordinator of groups is there."""
    of = node(group_initial_rebalance_delay_ms=0, **configs)
    of.wait(0)
    assert of.ask("FindCoordinator", 2, key="g", key_type=0).error_code == NONE
    return of


def joined(of: WireNode, version: int = 5, member_id: str = "", **fields: Any) -> Any:
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"m")
    wanted = {"session_timeout_ms": 10_000, "group_id": "g", "member_id": member_id, **fields}
    answers: list[Any] = []
    request = {**wanted, "protocol_type": "consumer", "protocols": (protocol,)}
    of.send("JoinGroup", version, request, answers.append)
    of.settle()
    of.wait(1)  # the first rebalance is complete when time passes
    return answers[0]


def member(of: WireNode, assignment: bytes = b"a") -> Any:
    """The answer to the JoinGroup of the only member of a group that is stable."""
    found = joined(of, 3)
    each = sync_group.SyncGroupRequestAssignment(member_id=found.member_id, assignment=assignment)
    identity = {"generation_id": found.generation_id, "member_id": found.member_id}
    answer = of.ask("SyncGroup", 3, group_id="g", assignments=(each,), **identity)
    assert (answer.error_code, answer.assignment) == (NONE, assignment)
    return found


def commit(of: WireNode, offset: int, version: int = 8, **fields: Any) -> list[int]:
    """The errors of a commit for t-0 and t-7, which is not there."""
    parts = tuple(
        offset_commit.OffsetCommitRequestPartition(
            partition_index=number, committed_offset=offset, committed_metadata="words"
        )
        for number in (0, 7)
    )
    named = {"topic_id": topic_id(of)} if version >= 10 else {"name": "t"}
    topic = offset_commit.OffsetCommitRequestTopic(partitions=parts, **named)
    answer = of.ask("OffsetCommit", version, group_id="g", topics=(topic,), **fields)
    return [each.error_code for found in answer.topics for each in found.partitions]


def committed(of: WireNode, version: int = 7, **fields: Any) -> list[tuple[int, int]]:
    """Offsets and errors of t-0 and t-1."""
    if version >= 8:
        named = {"topic_id": topic_id(of)} if version >= 10 else {"name": "t"}
        topic = offset_fetch.OffsetFetchRequestTopics(partition_indexes=(0, 1), **named)
        group = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=(topic,))
        (answer,) = of.ask("OffsetFetch", version, groups=(group,), **fields).groups
    else:
        old = offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
        answer = of.ask("OffsetFetch", version, group_id="g", topics=(old,), **fields)
    assert answer.error_code == NONE
    return [(each.committed_offset, each.error_code) for found in answer.topics for each in found.partitions]


@versions("JoinGroup")
def test_join_group(version: int) -> None:
    of = with_groups()
    answer = joined(of, version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert answer.member_id.startswith("test-")
        answer = joined(of, version, answer.member_id)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (NONE, 1, "range")
    assert answer.leader == answer.member_id
    assert [(each.member_id, each.metadata) for each in answer.members] == [(answer.member_id, b"m")]
    refused = joined(of, version, "nobody")
    assert (refused.error_code, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "nobody")
    assert refused.protocol_name == (None if version >= 7 else "")
    assert joined(of, version, group_id="").error_code == ErrorCode.INVALID_GROUP_ID


@versions("SyncGroup")
def test_sync_group(version: int) -> None:
    of = with_groups()
    found = joined(of, 3)
    identity = {"group_id": "g", "generation_id": 1, "member_id": found.member_id}
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    each = sync_group.SyncGroupRequestAssignment(member_id=found.member_id, assignment=b"a")
    answer = of.ask("SyncGroup", version, assignments=(each,), **identity, **protocol)
    assert (answer.error_code, answer.assignment) == (NONE, b"a")
    if version >= 5:
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
        other = of.ask("SyncGroup", version, **identity, protocol_type="consumer", protocol_name="sticky")
        assert other.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert of.ask("SyncGroup", version, **identity).error_code == other.error_code
    late = of.ask("SyncGroup", version, **(identity | {"generation_id": 9}), **protocol)
    assert late.error_code == ErrorCode.ILLEGAL_GENERATION


@versions("Heartbeat")
def test_heartbeat(version: int) -> None:
    of = with_groups()
    found = member(of)
    identity = {"group_id": "g", "generation_id": 1, "member_id": found.member_id}
    assert of.ask("Heartbeat", version, **identity).error_code == NONE
    assert of.ask("Heartbeat", version, **(identity | {"generation_id": 2})).error_code == 22
    of.wait(10_001)
    assert of.ask("Heartbeat", version, **identity).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@versions("LeaveGroup")
def test_leave_group(version: int) -> None:
    of = with_groups()
    found = member(of)
    if version < 3:
        assert of.ask("LeaveGroup", version, group_id="g", member_id="nobody").error_code == 25
        assert of.ask("LeaveGroup", version, group_id="g", member_id=found.member_id).error_code == NONE
        assert of.ask("LeaveGroup", version, group_id="no group", member_id="x").error_code == 25
    else:
        leaving = tuple(leave_group.MemberIdentity(member_id=each) for each in ("nobody", found.member_id))
        answer = of.ask("LeaveGroup", version, group_id="g", members=leaving)
        assert [(each.member_id, each.error_code) for each in answer.members] == [
            ("nobody", ErrorCode.UNKNOWN_MEMBER_ID),
            (found.member_id, NONE),
        ]
        (other,) = of.ask("LeaveGroup", version, group_id="no group", members=leaving[:1]).members
        assert other.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (described,) = of.ask("DescribeGroups", 0, groups=("g",)).groups
    assert described.group_state == "Empty"


@versions("DescribeGroups")
def test_describe_groups(version: int) -> None:
    of = with_groups()
    found = member(of)
    group, unknown = of.ask("DescribeGroups", version, groups=("g", "nobody")).groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (one,) = group.members
    assert (one.member_id, one.client_id, one.client_host) == (found.member_id, "test", "/localhost")
    assert (one.member_metadata, one.member_assignment) == (b"m", b"a")
    assert (unknown.group_state, unknown.error_code) == ("Dead", 69 if version >= 6 else NONE)
    assert bool(version >= 6 and unknown.error_message) == (version >= 6)


@versions("ListGroups")
def test_list_groups(version: int) -> None:
    of = with_groups()
    member(of)
    assert [each.group_id for each in of.ask("ListGroups", version).groups] == ["g"]
    if version >= 4:
        (group,) = of.ask("ListGroups", version, states_filter=("stable", "Dead")).groups
        assert group.group_state == "Stable"
        assert of.ask("ListGroups", version, states_filter=("Empty",)).groups == ()
    if version >= 5:
        (group,) = of.ask("ListGroups", version, types_filter=("Classic",)).groups
        assert group.group_type == "classic"
        assert of.ask("ListGroups", version, types_filter=("consumer",)).groups == ()


@versions("DeleteGroups")
def test_delete_groups(version: int) -> None:
    of = with_groups()
    assert commit(of, 3) == [NONE, UNKNOWN]
    results = of.ask("DeleteGroups", version, groups_names=("g", "nobody")).results
    assert [(each.group_id, each.error_code) for each in results] == [("g", NONE), ("nobody", 69)]
    assert committed(of) == [(-1, NONE)] * 2
    assert of.ask("DeleteGroups", version).results == ()


@versions("OffsetCommit")
def test_offset_commit(version: int) -> None:
    of = with_groups()
    assert commit(of, 3, version) == [NONE, UNKNOWN]
    assert committed(of) == [(3, NONE), (-1, NONE)]
    assert commit(of, 3, version, generation_id_or_member_epoch=1, member_id="x")[0] in (22, 25)
    if version >= 10:
        topic = offset_commit.OffsetCommitRequestTopic(
            topic_id="AAAAAAAAAAEAAAAAAAAAAg",
            partitions=(offset_commit.OffsetCommitRequestPartition(partition_index=0),),
        )
        answer = of.ask("OffsetCommit", version, group_id="g", topics=(topic,))
        assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    if version <= 4:
        assert commit(of, 4, version, retention_time_ms=2**63 - 1) == [NONE, UNKNOWN]
        assert committed(of) == [(4, NONE), (-1, NONE)]
        for retention_ms in (1_000, 0):
            assert commit(of, 5, version, retention_time_ms=retention_ms) == [NONE, UNKNOWN]
            of.wait(1_300_000)
            assert committed(of) == [(-1, NONE)] * 2, retention_ms


@versions("OffsetFetch")
def test_offset_fetch(version: int) -> None:
    of = with_groups()
    commit(of, 3)
    assert committed(of, version) == [(3, NONE), (-1, NONE)]
    if 2 <= version < 8:
        (topic,) = of.ask("OffsetFetch", version, group_id="g", topics=None).topics
        assert [(each.partition_index, each.committed_offset) for each in topic.partitions] == [(0, 3)]
    if version >= 8:
        groups = tuple(
            offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "", "x")
        )
        found, nameless, unknown = of.ask("OffsetFetch", version, groups=groups).groups
        assert [len(each.topics) for each in (found, nameless, unknown)] == [1, 0, 0]
        assert [each.error_code for each in (found, nameless, unknown)] == [NONE, NONE, NONE]
        assert of.ask("OffsetFetch", version).groups == ()


@pytest.mark.parametrize("version", [1, 2])
def test_offset_fetch_of_a_group_that_is_not_here(version: int) -> None:
    """Version 1 has no place for the error of the group: each partition has it."""
    of = node()
    topic = offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
    answer = of.ask("OffsetFetch", version, group_id="g", topics=(topic,))
    found = [(each.committed_offset, each.error_code) for name in answer.topics for each in name.partitions]
    wrong = ErrorCode.NOT_COORDINATOR
    assert (found, answer.error_code) == (([(-1, wrong)] * 2, NONE) if version == 1 else ([], wrong))


@pytest.mark.parametrize(("version", "rebalance_ms"), [(0, 10_000), (1, 70_000)])
def test_a_member_of_join_group_0_has_its_session_to_rebalance(version: int, rebalance_ms: int) -> None:
    of = with_groups()
    fields = {"rebalance_timeout_ms": 70_000} if version else {}
    assert joined(of, version, **fields).error_code == NONE
    group = of.broker.groups.coordinator.partitions.find("g")
    assert isinstance(group, ClassicGroup)
    (found,) = group.members.values()
    assert (found.session_timeout_ms, found.rebalance_timeout_ms) == (10_000, rebalance_ms)


@pytest.mark.parametrize(("version", "offset"), [(9, 5), (10, -1)])
def test_an_offset_of_a_former_topic_of_the_name_is_not_told_by_id(version: int, offset: int) -> None:
    """A crash may leave it: the deletion of the topic is durable before the tombstones of its offsets."""
    of = with_groups()
    identity, old_id = Identity("g", -1, ""), "AAAAAAAAAAAAAAAAAAAABQ"
    offsets = {TopicPartition("t", 0): OffsetToCommit(5, topic_id=old_id)}
    of.call(partial(of.broker.groups.commit, version=9), identity, offsets)
    assert committed(of, version)[0] == (offset, NONE)


def test_all_offsets_are_told_by_id_without_those_of_topics_that_are_gone() -> None:
    of = with_groups()
    offsets = {TopicPartition(name, 0): OffsetToCommit(5) for name in ("t", "gone")}
    of.call(partial(of.broker.groups.commit, version=9), Identity("g", -1, ""), offsets)
    groups = (offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None),)
    topics = [of.ask("OffsetFetch", version, groups=groups).groups[0].topics for version in (9, 10)]
    assert [each.name for each in topics[0]] == ["t", "gone"]
    assert [each.topic_id for each in topics[1]] == [topic_id(of)]


@versions("OffsetDelete")
def test_offset_delete(version: int) -> None:
    of = with_groups()
    parts = tuple(offset_delete.OffsetDeleteRequestPartition(partition_index=number) for number in (0, 7))
    topic = offset_delete.OffsetDeleteRequestTopic(name="t", partitions=parts)
    assert of.ask("OffsetDelete", version, group_id="g", topics=(topic,)).error_code == 69
    commit(of, 3)
    (answer,) = of.ask("OffsetDelete", version, group_id="g", topics=(topic,)).topics
    assert [each.error_code for each in answer.partitions] == [NONE, UNKNOWN]
    assert committed(of) == [(-1, NONE)] * 2


def commit_in_transaction(of: WireNode, producer: Producer, offset: int, version: int, **fields: Any) -> int:
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    missing = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=7)
    named = {"topic_id": of.broker.image.topics["t"].topic_id} if version >= 6 else {"name": "t"}
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(**named, partitions=(part, missing))
    wanted = {
        "transactional_id": "x", "group_id": "g", "producer_id": producer.identity.producer_id,
        "producer_epoch": producer.identity.producer_epoch, "topics": (topic,), **fields,
    }  # fmt: skip
    (answer,) = of.ask("TxnOffsetCommit", version, **wanted).topics
    assert answer.partitions[1].error_code == UNKNOWN
    return int(answer.partitions[0].error_code)


@versions("TxnOffsetCommit")
def test_txn_offset_commit(version: int) -> None:
    of = with_groups()
    producer = Producer(of, version=2 if version >= 5 else 1)
    identity = producer.identity.producer_id, producer.identity.producer_epoch
    if version < 5:
        assert commit_in_transaction(of, producer, 5, version) == (120 if version >= 4 else 48)
        added = of.ask(
            "AddOffsetsToTxn", 3, transactional_id="x", producer_id=identity[0], producer_epoch=identity[1],
            group_id="g",
        )  # fmt: skip
        assert added.error_code == NONE
    assert commit_in_transaction(of, producer, 5, version) == NONE
    assert committed(of) == [(-1, NONE)] * 2
    assert committed(of, require_stable=True) == [(-1, 88), (-1, NONE)]
    assert producer.end() == NONE
    assert committed(of, require_stable=True) == [(5, NONE), (-1, NONE)]
    if version >= 3:
        unknown = {"generation_id_or_member_epoch": 4, "member_id": "m", "group_id": "another"}
        if version >= 5:
            told = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.ILLEGAL_GENERATION
            assert commit_in_transaction(of, producer, 6, version, **unknown) == told
            assert commit_in_transaction(of, producer, 6, version, group_id="") == 24
            assert producer.end(commit=False) == NONE
    assert committed(of) == [(5, NONE), (-1, NONE)]
    of.restart()
    assert committed(of) == [(5, NONE), (-1, NONE)]


def test_offsets_of_a_zombie_are_refused_once() -> None:
    """The group refuses at once, while the answer of the transaction coordinator is handled."""
    of = with_groups()
    producer = Producer(of, version=1)
    identity = {
        "producer_id": producer.identity.producer_id, "producer_epoch": producer.identity.producer_epoch,
        "transactional_id": "x", "group_id": "g",
    }  # fmt: skip
    assert of.ask("AddOffsetsToTxn", 3, **identity).error_code == NONE
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", partitions=(part,))
    answers: list[Any] = []
    zombie = {"generation_id_or_member_epoch": 4, "member_id": "m", "topics": (topic,)}
    of.send("TxnOffsetCommit", 3, {**identity, **zombie}, answers.append)
    of.settle()
    assert [answer.topics[0].partitions[0].error_code for answer in answers] == [22]


def test_a_broker_that_stops_answers_members_that_wait() -> None:
    of = with_groups(group_min_session_timeout_ms=0)
    found = member(of)
    answers: list[Any] = []
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"m")
    of.send(
        "JoinGroup", 3,
        {
            "group_id": "g", "session_timeout_ms": 10_000, "member_id": "", "protocol_type": "consumer",
            "protocols": (protocol,),
        },
        answers.append,
    )  # fmt: skip
    of.settle()
    assert answers == []
    of.broker.groups.stop()
    of.settle()
    assert [answer.error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    identity = {"group_id": "g", "generation_id": 1, "member_id": found.member_id}
    assert of.ask("Heartbeat", 3, **identity).error_code == ErrorCode.NOT_COORDINATOR
    of.restart()
    assert of.ask("Heartbeat", 3, **identity).error_code == NONE


def test_offsets_of_a_transaction_that_is_open_at_a_restart() -> None:
    of = with_groups()
    producer = Producer(of)
    assert commit_in_transaction(of, producer, 5, 5) == NONE
    of.restart()
    assert committed(of, require_stable=True) == [(-1, 88), (-1, NONE)]
    assert producer.end() == NONE
    assert committed(of) == [(5, NONE), (-1, NONE)]


def test_offsets_of_a_transaction_that_times_out() -> None:
    of = with_groups()
    producer = Producer(of)
    commit(of, 3)
    assert commit_in_transaction(of, producer, 5, 5) == NONE
    of.wait(70_000)
    assert committed(of, require_stable=True) == [(3, NONE), (-1, NONE)]


def test_a_fenced_producer_commits_no_offsets() -> None:
    of = with_groups()
    producer = Producer(of)
    commit_in_transaction(of, producer, 5, 5)
    Producer(of)
    assert commit_in_transaction(of, producer, 6, 5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert committed(of, require_stable=True) == [(-1, NONE)] * 2
