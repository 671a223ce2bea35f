"""Groups of the classic protocol: generations, sessions (``GroupMetadataManagerTest``)."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from tests.unit.coordinator.group_clients import Member, Node, stable
from txnkafka.coordinator.group.classic.classic_group import ClassicGroup
from txnkafka.error_codes import ErrorCode as E


def test_two_members_get_what_the_leader_assigns() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    assert (leader.generation, other.generation) == (1, 1)
    assert [each[0] for each in leader.joined[-1].members] == [leader.member_id, other.member_id]
    assert other.joined[-1].members == ()
    assert [each.synced[-1].assignment.decode() for each in (leader, other)] == [
        leader.member_id,
        other.member_id,
    ]
    assert leader.heartbeat() == other.heartbeat() == E.NONE


def test_a_dynamic_member_gets_its_id_first() -> None:
    node = Node()
    member = Member(node).join(needs_known_id=True)
    assert (member.error, member.member_id) == (E.MEMBER_ID_REQUIRED, "client-id1")
    member.join()
    node.wait(0)
    assert (member.error, member.generation, node.state) == (E.NONE, 1, "CompletingRebalance")


def test_an_id_that_nobody_comes_back_with_is_withdrawn() -> None:
    node = Node()
    late = Member(node).join(needs_known_id=True)
    first = Member(node).join()
    node.wait(9_999)
    assert first.generation == 1  # the first rebalance waits for nobody
    late.join()
    assert late.error == E.MEMBER_ID_REQUIRED  # its JoinGroup waits for the first to join again
    gone = Member(node).join(needs_known_id=True)
    node.wait(10_001)
    assert gone.join().error == E.UNKNOWN_MEMBER_ID


def test_the_first_rebalance_waits_while_members_come() -> None:
    node = Node(initial_rebalance_delay_ms=3_000)
    members = [Member(node).join()]
    for _ in range(3):
        node.wait(2_000)
        members.append(Member(node).join())
    assert all(member.error is None for member in members)
    node.wait(6_000)
    assert {member.generation for member in members} == {1}


def test_the_first_rebalance_does_not_wait_beyond_the_rebalance_timeout() -> None:
    node = Node(initial_rebalance_delay_ms=3_000)
    members = [Member(node, rebalance_ms=7_000).join()]
    for _ in range(8):
        node.wait(1_000)
        members.append(Member(node, rebalance_ms=7_000).join())
    assert members[0].generation == 1


def test_a_new_member_begins_a_rebalance_that_the_others_hear_of() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    new = Member(node).join()
    assert (node.state, leader.heartbeat(), other.heartbeat()) == (
        "PreparingRebalance",
        E.REBALANCE_IN_PROGRESS,
        E.REBALANCE_IN_PROGRESS,
    )
    assert leader.sync().synced[-1].error == E.REBALANCE_IN_PROGRESS
    leader.join()
    assert new.error is None
    other.join()
    assert {member.generation for member in (leader, other, new)} == {2}
    assert node.state == "CompletingRebalance"


def test_who_does_not_join_in_time_is_not_in_the_next_generation() -> None:
    node = Node()
    leader, other = stable(
        node, Member(node, session_ms=60_000, rebalance_ms=20_000), Member(node, session_ms=60_000)
    )
    other.rebalance_ms = 20_000
    new = Member(node, rebalance_ms=20_000).join()
    leader.join()
    node.wait(60_001)
    assert (new.generation, leader.generation) == (2, 2)
    assert other.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert list(node.group().members) == [leader.member_id, new.member_id]


def test_a_session_ends_without_heartbeats() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    for _ in range(3):
        node.wait(6_000)
        assert leader.heartbeat() in (E.NONE, E.REBALANCE_IN_PROGRESS)
    assert (node.state, list(node.group().members)) == ("PreparingRebalance", [leader.member_id])
    assert other.heartbeat() == E.UNKNOWN_MEMBER_ID
    leader.join()
    assert (leader.generation, leader.error) == (2, E.NONE)


def test_a_member_that_waits_for_its_answer_does_not_expire() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node, session_ms=60_000))
    leader.join()
    node.wait(50_000)
    assert leader.error == E.NONE  # not yet answered: the other has not joined
    assert leader.generation == 1
    assert leader.member_id in node.group().members
    other.join()
    assert leader.generation == 2


def test_a_group_whose_members_have_left_is_empty() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    assert (other.leave(), node.state) == (E.NONE, "PreparingRebalance")
    assert leader.leave() == E.NONE
    assert (node.state, node.group().generation) == ("Empty", 2)
    assert leader.leave() == E.UNKNOWN_MEMBER_ID
    assert Member(node, member_id="nobody").join().error == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"generation": 5}, E.ILLEGAL_GENERATION), ({"generation": 0}, E.ILLEGAL_GENERATION),
        ({"member_id": "nobody"}, E.UNKNOWN_MEMBER_ID), ({"group": "another"}, E.UNKNOWN_MEMBER_ID),
        ({"instance": "i"}, E.UNKNOWN_MEMBER_ID), ({"group": ""}, E.INVALID_GROUP_ID),
    ],
)  # fmt: skip
def test_who_is_no_member_is_refused(change: dict[str, object], error: E) -> None:
    node = Node()
    (member,) = stable(node, Member(node))
    stranger = Member(node, member_id=member.member_id, generation=member.generation)
    for name, value in change.items():
        setattr(stranger, name, value)
    assert stranger.heartbeat() == error
    assert stranger.sync().synced[-1].error == error
    if "generation" not in change:
        assert stranger.leave() == error


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"session_ms": 5_999}, E.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, E.INVALID_SESSION_TIMEOUT),
        ({"protocols": ()}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"group": ""}, E.INVALID_GROUP_ID),
    ],
)
def test_a_member_that_cannot_join(change: dict[str, object], error: E) -> None:
    node = Node()
    member = Member(node)
    for name, value in change.items():
        setattr(member, name, value)
    assert member.join().error == error


def test_a_member_without_a_common_protocol_cannot_join() -> None:
    node = Node()
    stable(node, Member(node))
    assert Member(node, protocols=(("sticky", b""),)).join().error == E.INCONSISTENT_GROUP_PROTOCOL
    assert Member(node, protocol_type="connect").join().error == E.INCONSISTENT_GROUP_PROTOCOL


def test_the_members_vote_for_a_protocol_that_all_support() -> None:
    node = Node()
    first = Member(node, protocols=(("a", b""), ("b", b""))).join()
    second = Member(node, protocols=(("c", b""), ("b", b""), ("a", b""))).join()
    third = Member(node, protocols=(("b", b""), ("a", b""))).join()
    node.wait(0)
    assert {member.joined[-1].protocol for member in (first, second, third)} == {"b"}


def test_a_group_has_a_limit() -> None:
    node = Node(max_size=2)
    members = [Member(node).join() for _ in range(3)]
    assert [member.error for member in members] == [None, None, E.GROUP_MAX_SIZE_REACHED]
    node.wait(0)
    assert Member(node).join().error == E.GROUP_MAX_SIZE_REACHED


def test_a_join_that_is_repeated_is_answered_again() -> None:
    node = Node()
    leader, other = Member(node).join(), Member(node).join()
    node.wait(0)
    assert leader.join().joined[-1] == leader.joined[0]
    other.sync()
    leader.sync()
    assert other.join().joined[-1] == other.joined[0]
    assert node.state == "Stable"
    other.protocols = (("range", b"changed"),)
    other.join()
    assert node.state == "PreparingRebalance"


def test_of_two_requests_that_wait_the_last_one_gets_the_answer() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    leader.join().join()
    assert [answer.error for answer in leader.joined[1:]] == [E.REBALANCE_IN_PROGRESS]
    other.join()
    assert leader.joined[-1].generation == 2
    other.sync().sync()
    assert [answer.error for answer in other.synced[1:]] == [E.REBALANCE_IN_PROGRESS]
    leader.sync()
    assert other.synced[-1].error == E.NONE


def test_a_leader_that_joins_again_begins_a_rebalance() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    leader.join()
    assert node.state == "PreparingRebalance"
    other.join()
    assert (leader.generation, other.generation) == (2, 2)


def test_members_that_do_not_sync_in_time_are_removed() -> None:
    node = Node()
    leader = Member(node, session_ms=100_000, rebalance_ms=20_000).join()
    other = Member(node, session_ms=100_000, rebalance_ms=20_000).join()
    node.wait(0)
    leader.sync()
    assert node.state == "Stable"
    node.wait(20_001)
    assert (node.state, list(node.group().members)) == ("PreparingRebalance", [leader.member_id])
    assert other.heartbeat() == E.UNKNOWN_MEMBER_ID


# What is in the log


def test_a_generation_is_there_after_a_restart() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node, instance="i"))
    before = node.coordinator.describe("g")
    node.start()
    assert node.coordinator.describe("g") == before
    assert leader.heartbeat() == other.heartbeat() == E.NONE
    node.wait(10_001)
    assert leader.heartbeat() == E.UNKNOWN_MEMBER_ID


def test_a_group_that_has_become_too_large_joins_again_after_a_restart() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    node.config = node.config._replace(max_size=1)
    node.start()
    assert (leader.heartbeat(), other.heartbeat()) == (E.REBALANCE_IN_PROGRESS,) * 2
    leader.join()
    assert other.join().error == E.GROUP_MAX_SIZE_REACHED
    node.wait(60_001)
    assert list(node.group().members) == [leader.member_id]


def test_an_assignment_is_told_when_it_is_durable() -> None:
    node = Node(waits=True)
    member = Member(node).join()
    node.wait(0)
    member.sync(client_id1=b"mine")
    assert (member.synced, node.state) == ([], "CompletingRebalance")
    node.flush()
    assert (member.synced[-1].assignment, node.state) == (b"mine", "Stable")


@pytest.mark.parametrize("when", ["append", "flush"])
def test_an_assignment_that_cannot_be_written_begins_a_rebalance(when: str) -> None:
    node = Node(waits=True)
    member = Member(node).join()
    node.wait(0)
    node.fails = when == "append"
    member.sync(client_id1=b"mine")
    node.flush(E.KAFKA_STORAGE_ERROR)
    assert (member.synced[-1].error, node.state) == (E.NOT_COORDINATOR, "PreparingRebalance")
    node.fails = False
    assert member.join().generation == 2


def test_a_partition_that_goes_takes_the_waiting_requests_with_it() -> None:
    node = Node()
    (leader,) = stable(node, Member(node))
    new = Member(node).join()
    node.coordinator.resign(0)
    assert (new.error, leader.heartbeat()) == (E.NOT_COORDINATOR, E.NOT_COORDINATOR)
    assert node.coordinator.advance(node.now_ms + 10**9) > 0


def test_groups_are_described_listed_and_deleted() -> None:
    node = Node()
    (member,) = stable(node, Member(node))
    described = node.coordinator.describe("g")
    assert (described.state, described.protocol_type, described.protocol) == ("Stable", "consumer", "range")
    assert described.members[0].client_host == "/127.0.0.1"
    assert [each.state for each in node.coordinator.listed()] == ["Stable"]
    errors: list[E] = []
    node.coordinator.delete("g", errors.append)
    member.leave()
    node.coordinator.delete("g", errors.append)
    node.flush()
    node.coordinator.delete("g", errors.append)
    node.flush()
    assert errors == [E.NON_EMPTY_GROUP, E.NONE, E.GROUP_ID_NOT_FOUND]
    assert node.coordinator.describe("g").error == E.GROUP_ID_NOT_FOUND
    node.start()
    assert node.coordinator.listed() == []


def test_a_group_without_members_is_deleted_although_it_has_given_an_id() -> None:
    """A client that went away between two JoinGroups does not keep it; one that comes back begins anew."""
    node = Node()
    (member,) = stable(node, Member(node))
    member.leave()
    node.commit(5)
    late = Member(node).join(needs_known_id=True)
    errors: list[E] = []
    node.coordinator.delete("g", errors.append)
    node.flush()
    assert errors == [E.NONE]
    assert node.fetched().offset == -1
    assert late.join().error == E.UNKNOWN_MEMBER_ID
    node.wait(10_001)  # nothing is left of the id
    assert node.coordinator.listed() == []


def test_a_group_does_not_expire_while_the_id_that_it_gave_is_waited_for() -> None:
    node = Node()
    (member,) = stable(node, Member(node))
    member.leave()
    node.wait(599_999)
    late = Member(node).join(needs_known_id=True)
    node.wait(2)
    late.join()
    node.wait(0)
    assert (late.error, node.state) == (E.NONE, "CompletingRebalance")


def test_a_group_whose_last_member_has_left_waits_for_the_id_that_it_gave() -> None:
    """Whatever protocol a new member brings is right then, and one that has left is unknown."""
    node = Node()
    (member,) = stable(node, Member(node))
    late = Member(node).join(needs_known_id=True)
    member.leave()
    assert node.state == "PreparingRebalance"
    assert member.join().error == E.UNKNOWN_MEMBER_ID
    assert late.join().error == E.NONE


@pytest.mark.parametrize("has_id", [False, True])
def test_nobody_joins_without_protocols_while_an_id_is_waited_for(has_id: bool) -> None:
    node = Node()
    (member,) = stable(node, Member(node))
    late = Member(node).join(needs_known_id=True)
    member.leave()
    without = Member(node, member_id=late.member_id if has_id else "", protocols=()).join()
    assert without.error == E.INCONSISTENT_GROUP_PROTOCOL
    assert (late.join().error, node.state) == (E.NONE, "CompletingRebalance")


def test_a_rebalance_whose_end_fails_is_ended_later(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()
    leader, _ = stable(node, Member(node), Member(node))
    leader.join()
    with monkeypatch.context() as patch:
        patch.setattr(ClassicGroup, "voted", Mock(side_effect=ZeroDivisionError))
        with pytest.raises(ZeroDivisionError):
            node.wait(leader.rebalance_ms)
    assert (leader.generation, node.group().generation, node.state) == (1, 1, "PreparingRebalance")
    node.wait(2 * leader.rebalance_ms)
    assert (leader.error, leader.generation) == (E.NONE, 2)


def test_the_assignment_is_described_until_there_is_another_one() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node))
    leader.join()
    shown = [each.assignment.decode() for each in node.coordinator.describe("g").members]
    assert shown == [leader.member_id, other.member_id]
