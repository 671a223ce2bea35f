"""Groups of the consumer protocol: epochs, partitions that go from member to member, static members, time
(``GroupMetadataManagerTest``, ``CurrentAssignmentBuilderTest``)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.coordinator.consumer_clients import Consumer, ConsumerNode, config, state_of, topic_id
from tests.unit.coordinator.group_clients import Member
from txnkafka.coordinator.group.consumer.consumer_member import MemberState
from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat, Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode as E
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.records.group_log import decode_group_log


def settled(*consumers: Consumer) -> None:
    """Heartbeats until nothing changes any more."""
    for _ in range(6):
        for consumer in consumers:
            assert consumer.follow().error == E.NONE


def test_the_first_member_gets_all_partitions() -> None:
    node = ConsumerNode({"t": 3})
    one = Consumer(node, "a").join()
    answer = one.answers[-1]
    assert (answer.error, answer.member_id, answer.epoch, answer.interval_ms) == (E.NONE, "a", 2, 5_000)
    assert one.has == [(1, 0), (1, 1), (1, 2)]
    assert node.consumers().state == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up() -> None:
    node = ConsumerNode({"t": 2})
    one, two = Consumer(node, "a").join(), Consumer(node, "b").join()
    assert (two.epoch, two.has, node.consumers().state) == (3, [], "Reconciling")
    assert two.follow().has == []
    one.beat(owned=one.owned)
    assert (one.epoch, one.has) == (2, [(1, 0)])
    assert node.consumers().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert two.follow().has == []
    one.follow()
    assert (one.epoch, two.follow().has, node.consumers().state) == (3, [(1, 1)], "Stable")


def test_an_answer_that_is_lost_is_given_again() -> None:
    node = ConsumerNode({"t": 2})
    one = Consumer(node, "a").join()
    before = dict(one.owned)
    one.beat(topics=("t", "missing"))
    assert one.epoch == 3
    assert one.beat(epoch=2, owned=before).error == E.NONE
    assert one.beat(epoch=2).error == E.FENCED_MEMBER_EPOCH
    assert one.beat(epoch=2, owned={topic_id(1): [7]}).error == E.FENCED_MEMBER_EPOCH
    assert one.beat(epoch=1, owned=before).error == E.FENCED_MEMBER_EPOCH
    assert one.beat(epoch=4).error == E.FENCED_MEMBER_EPOCH
    assert one.join().error == E.NONE


def test_records_are_in_the_order_of_kafka() -> None:
    node = ConsumerNode({"t": 1})
    Consumer(node, "a").join()
    kinds = [decode_group_log(event.key, event.value).key_version for event in node.events]
    assert kinds == [5, 3, 7, 6, 8]
    Consumer(node, "a").leave()
    left = [decode_group_log(event.key, event.value) for event in node.events[len(kinds) :]]
    assert [(each.key_version, each.is_tombstone) for each in left] == [
        (8, True), (7, True), (5, True), (3, False), (6, False),
    ]  # fmt: skip


def test_a_heartbeat_without_news_appends_nothing() -> None:
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a").join()
    count = len(node.events)
    one.follow().beat()
    assert len(node.events) == count
    assert one.answers[-1].assignment is None


@pytest.mark.parametrize("change", ["create", "grow", "delete"])
def test_topics_that_change_are_assigned_anew(change: str) -> None:
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a", topics=("t", "u")).join()
    if change == "create":
        node.create("u", 1)
    elif change == "grow":
        node.grow("t", 1)
    else:
        node.delete("t")
    settled(one)
    expected = {"create": [(1, 0), (2, 0)], "grow": [(1, 0), (1, 1)], "delete": []}
    assert (one.epoch, one.has) == (3, expected[change])


def test_a_topic_that_nobody_is_subscribed_to_changes_nothing() -> None:
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a").join()
    node.create("other", 3)
    assert one.follow().epoch == 2


def test_a_member_that_is_not_heard_of_is_removed() -> None:
    node = ConsumerNode({"t": 2})
    one, two = Consumer(node, "a").join(), Consumer(node, "b").join()
    settled(one, two)
    node.wait(44_999)
    two.follow()
    node.wait(1)
    assert list(node.consumers().members) == ["b"]
    assert two.follow().has == [(1, 0), (1, 1)]
    assert one.follow().error == E.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_removed() -> None:
    node = ConsumerNode({"t": 2})
    one = Consumer(node, "a", rebalance_ms=20_000).join()
    two = Consumer(node, "b").join()
    held = dict(one.owned)
    for _ in range(4):
        one.beat(owned=held)
        two.follow()
        node.wait(5_000)
    assert list(node.consumers().members) == ["b"]
    assert two.follow().has == [(1, 0), (1, 1)]


def test_the_next_assignment_waits_for_its_interval() -> None:
    node = ConsumerNode({"t": 2}, consumer=config(assignment_interval_ms=1_000))
    one = Consumer(node, "a").join()
    two = Consumer(node, "b").join()
    assert (two.epoch, node.consumers().state) == (2, "Assigning")
    node.wait(1_000)
    assert one.follow().has == [(1, 0)]
    assert one.follow().epoch == 3


def test_a_static_member_comes_back_to_its_partitions() -> None:
    node = ConsumerNode({"t": 2})
    one, other = Consumer(node, "a", instance="i").join(), Consumer(node, "b").join()
    settled(one, other)
    again = Consumer(node, "c", instance="i").join()
    assert again.error == E.UNRELEASED_INSTANCE_ID
    assert one.leave(-2).error == E.NONE
    assert other.follow().epoch == 3
    again.join()
    assert (again.epoch, again.has, other.follow().epoch) == (3, [(1, 0)], 3)
    assert one.beat(epoch=3).error == E.FENCED_INSTANCE_ID
    node.wait(45_000)
    assert node.consumers().members == {}


def test_a_member_that_comes_with_another_instance_id_has_that_one_only() -> None:
    """As after a restart: its record has one."""
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a", instance="i").join()
    one.instance = "j"
    one.join()
    assert node.consumers().static == {"j": "a"}
    assert Consumer(node, "b", instance="i").join().error == E.NONE


def test_a_static_member_that_stays_away_is_removed() -> None:
    node = ConsumerNode({"t": 1})
    Consumer(node, "a", instance="i").join().leave(-2)
    node.wait(44_999)
    assert node.consumers().static == {"i": "a"}
    node.wait(1)
    assert (node.consumers().static, node.consumers().state) == ({}, "Empty")


def test_a_group_that_is_full_takes_no_other_member() -> None:
    node = ConsumerNode({"t": 1}, consumer=config(max_size=1))
    one = Consumer(node, "a").join()
    assert Consumer(node, "b").join().error == E.GROUP_MAX_SIZE_REACHED
    assert one.join().error == E.NONE


def test_the_configs_of_a_group_count() -> None:
    node = ConsumerNode({"t": 1})
    names = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")
    node.image.configs[32, "g"] = dict(zip(names, ("50000", "7000"), strict=True))
    assert Consumer(node, "a").join().answers[-1].interval_ms == 7_000
    node.wait(49_999)
    assert "a" in node.consumers().members
    node.wait(1)
    assert node.consumers().members == {}


def test_answers_wait_for_the_disk() -> None:
    node = ConsumerNode({"t": 1}, waits=True)
    answers = node.ask(ConsumerHeartbeat("g", "a", 0, rebalance_timeout_ms=1_000, topics=("t",), owned={}))
    assert answers == []
    node.flush()
    assert [(each.error, each.epoch) for each in answers] == [(E.NONE, 2)]


def test_a_group_whose_log_fails_is_as_before() -> None:
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a").join()
    before = state_of(node.consumers())
    node.fails = True
    assert Consumer(node, "b").join().error == E.NOT_COORDINATOR
    assert one.leave().error == E.NOT_COORDINATOR
    assert state_of(node.consumers()) == before


def test_what_is_loaded_is_what_was_there() -> None:
    node = ConsumerNode({"t": 4})
    one, two = Consumer(node, "a").join(), Consumer(node, "b", instance="i").join()
    one.follow()
    before = state_of(node.consumers())
    node.start()
    assert state_of(node.consumers()) == before
    settled(one, two)
    assert (one.has, two.has) == ([(1, 0), (1, 1)], [(1, 2), (1, 3)])


def test_a_loaded_member_that_was_to_give_up_has_its_time_again() -> None:
    node = ConsumerNode({"t": 2})
    one = Consumer(node, "a", rebalance_ms=10_000).join()
    Consumer(node, "b").join()
    one.follow()
    node.start()
    node.wait(9_999)
    assert "a" in node.consumers().members
    node.wait(1)
    assert "a" not in node.consumers().members


def test_a_group_that_is_deleted_leaves_nothing() -> None:
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a").join()
    errors: list[E] = []
    node.coordinator.delete("g", errors.append)
    one.leave()
    node.coordinator.delete("g", errors.append)
    node.settle()
    assert errors == [E.NON_EMPTY_GROUP, E.NONE]
    node.start()
    assert node.coordinator.partitions.find("g") == E.GROUP_ID_NOT_FOUND


def test_an_empty_group_that_cannot_be_replaced_by_a_classic_one_stays() -> None:
    node = ConsumerNode({"t": 1})
    Consumer(node, "a").join().leave()
    node.fails = True
    member = Member(node).join()
    assert (member.error, node.consumers().state) == (E.NOT_COORDINATOR, "Empty")
    node.fails = False
    member.join()
    node.wait(0)
    assert (member.error, member.generation) == (E.NONE, 1)


def test_an_empty_group_expires_with_its_offsets() -> None:
    node = ConsumerNode({"t": 1}, retention_ms=100_000, retention_check_interval_ms=1_000)
    Consumer(node, "a").join().leave()
    node.commit(1, topic="t")
    node.wait(99_000)
    assert node.consumers().state == "Empty"
    node.wait(3_000)
    assert node.coordinator.partitions.find("g") == E.GROUP_ID_NOT_FOUND


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    node = ConsumerNode({"t": 1}, retention_ms=1_000, retention_check_interval_ms=1_000)
    one = Consumer(node, "a").join()
    for topic in ("t", "u"):
        assert node.commit(1, Identity("g", 2, "a"), topic=topic, version=9) == E.NONE
    for _ in range(3):
        node.wait(1_000)
        one.follow()
    assert [node.fetched(topic=topic).offset for topic in ("t", "u")] == [1, -1]


def test_a_simple_group_becomes_a_consumer_group_with_its_offsets() -> None:
    node = ConsumerNode({"t": 1})
    assert node.commit(7) == E.NONE
    Consumer(node, "a").join()
    assert (node.consumers().state, node.fetched().offset) == ("Stable", 7)
    node.start()
    assert (node.consumers().state, node.fetched().offset) == ("Stable", 7)


def test_a_group_moves_on_with_what_an_older_kafka_wrote() -> None:
    node = ConsumerNode({"t": 1})
    Consumer(node, "a").join()
    node.consumers().has_old_metadata = True
    node.grow("t", 1)
    Consumer(node, "a", epoch=2).follow()
    kinds = [decode_group_log(event.key, event.value) for event in node.events]
    assert [each.is_tombstone for each in kinds if each.key_version == 4] == [True]
    assert not node.consumers().has_old_metadata


def test_a_member_in_a_state_of_a_newer_kafka_begins_anew() -> None:
    """It is fenced until it says that it owns nothing."""
    node = ConsumerNode({"t": 1})
    member = Consumer(node, "a").join()
    group = node.consumers()
    group.put(replace(group.members["a"], state=MemberState.UNKNOWN))
    assert member.follow().error == member.beat().error == E.FENCED_MEMBER_EPOCH
    assert (member.beat(owned={}).error, member.has) == (E.NONE, [(1, 0)])
    assert group.state == "Stable"


def test_requests_without_a_group() -> None:
    node = ConsumerNode({"t": 1})
    (answer,) = node.ask(ConsumerHeartbeat("g", "a", 3))
    assert (answer.error, answer.message) == (E.GROUP_ID_NOT_FOUND, "Consumer group g not found.")
    (answer,) = node.ask(ConsumerHeartbeat("g", "a", -1))
    assert (answer.error, answer.message) == (E.GROUP_ID_NOT_FOUND, "Group g not found.")


def test_a_partition_that_is_given_up_twice_is_not_lost() -> None:
    """A member that changes its mind has the partition back at once."""
    node = ConsumerNode({"t": 1, "u": 1})
    one = Consumer(node, "a", topics=("t", "u")).join()
    one.beat(topics=("u",), owned=one.owned)
    assert (one.epoch, one.has) == (2, [(2, 0)])
    one.beat(topics=("t", "u"))
    settled(one)
    assert one.has == [(1, 0), (2, 0)]


def test_offsets_may_be_committed_with_an_older_epoch() -> None:
    node = ConsumerNode({"t": 2})
    one, two = Consumer(node, "a").join(), Consumer(node, "b").join()
    settled(one, two)
    named = node.image.topics["t"].topic_id

    def committed(member: str, epoch: int, partition: int) -> E:
        return _commit(node, Identity("g", epoch, member), TopicPartition("t", partition), named)

    assert [committed("a", epoch, 0) for epoch in (1, 2, 3, 4)] == [
        E.STALE_MEMBER_EPOCH, E.NONE, E.NONE, E.STALE_MEMBER_EPOCH,
    ]  # fmt: skip
    assert committed("a", 2, 1) == E.STALE_MEMBER_EPOCH
    assert [committed("b", epoch, 1) for epoch in (2, 3)] == [E.STALE_MEMBER_EPOCH, E.NONE]


def test_who_may_commit_offsets_with_a_transaction() -> None:
    """Nobody in particular may, as in any group; a member only in its epoch, or with what it has had since an
    older one."""
    node = ConsumerNode({"t": 2})
    one, two = Consumer(node, "a").join(), Consumer(node, "b").join()
    settled(one, two)
    named = node.image.topics["t"].topic_id

    def committed(member: str, epoch: int, partition: int = 0, group: str = "g") -> E:
        place, answers = TopicPartition("t", partition), list[dict[TopicPartition, E]]()
        node.coordinator.commit(
            Identity(group, epoch, member), {place: OffsetToCommit(1, topic_id=named)}, answers.append,
            node.now_ms, producer=ProducerIdAndEpoch(1, 0),
        )  # fmt: skip
        node.settle()
        return answers[0][place]

    assert committed("", -1) == E.NONE
    assert [committed("nobody", 3), committed("", 3)] == [E.UNKNOWN_MEMBER_ID] * 2
    assert [committed("a", epoch) for epoch in (-1, 1, 2, 3, 4)] == [
        E.STALE_MEMBER_EPOCH, E.STALE_MEMBER_EPOCH, E.NONE, E.NONE, E.STALE_MEMBER_EPOCH,
    ]  # fmt: skip
    assert [committed("b", epoch, 1) for epoch in (2, 3)] == [E.STALE_MEMBER_EPOCH, E.NONE]
    for member in (one, two):
        member.leave()
    assert [committed("a", -1), committed("", -1)] == [E.NONE] * 2
    assert committed("a", 3) == E.UNKNOWN_MEMBER_ID


def _commit(node: ConsumerNode, identity: Identity, partition: TopicPartition, named: str) -> E:
    answers: list[dict[TopicPartition, E]] = []
    offsets = {partition: OffsetToCommit(1, topic_id=named)}
    node.coordinator.commit(identity, offsets, answers.append, node.now_ms, version=9)
    node.settle()
    return answers[0][partition]
