"""Static members of groups of the classic protocol (KIP-345, ``GroupMetadataManagerTest``)."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group_clients import Member, Node, stable
from txnkafka.coordinator.group.group_requests import Identity
from txnkafka.error_codes import ErrorCode as E


def test_a_static_member_that_comes_back_keeps_its_assignment() -> None:
    node = Node()
    leader, other = stable(node, Member(node), Member(node, instance="i"))
    again = Member(node, instance="i").join()
    assert (again.error, again.generation, node.state) == (E.NONE, 1, "Stable")
    assert again.sync().synced[-1].assignment == other.member_id.encode()
    assert (other.heartbeat(), again.heartbeat()) == (E.FENCED_INSTANCE_ID, E.NONE)
    assert leader.heartbeat() == E.NONE


@pytest.mark.parametrize("when", ["append", "flush"])
def test_a_static_member_whose_new_id_cannot_be_written_keeps_the_old_one(when: str) -> None:
    node = Node()
    old = stable(node, Member(node, instance="i"))[0]
    node.waits, node.fails = True, when == "append"
    again = Member(node, instance="i", session_ms=old.session_ms + 1_000).join()
    node.flush(E.KAFKA_STORAGE_ERROR)
    answer = again.joined[-1]
    assert (answer.error, answer.member_id, answer.generation) == (E.NOT_COORDINATOR, "", 1)
    assert (old.heartbeat(), node.state) == (E.NONE, "Stable")
    node.waits = node.fails = False
    node.wait(old.session_ms + 1)  # its own session timeout is in effect again
    assert (old.heartbeat(), list(node.group().members)) == (E.UNKNOWN_MEMBER_ID, [])


def test_protocols_that_others_have_joined_for_stay_when_a_new_id_cannot_be_written() -> None:
    node = Node()
    stable(node, Member(node, instance="i", session_ms=90_000, protocols=(("a", b""), ("b", b""))))
    node.waits = True
    again = Member(node, instance="i", session_ms=90_000, protocols=(("a", b""), ("c", b""))).join()
    other = Member(node, protocols=(("c", b""),)).join()
    node.flush(E.KAFKA_STORAGE_ERROR)
    node.waits = False
    assert (again.error, other.error) == (E.NOT_COORDINATOR, None)
    node.wait(other.rebalance_ms)
    assert (other.error, other.joined[-1].protocol) == (E.NONE, "c")


@pytest.mark.parametrize("may_skip", [False, True])
def test_a_static_leader_that_comes_back_is_told_whether_to_assign(may_skip: bool) -> None:
    node = Node()
    stable(node, Member(node, instance="i"))
    first_id = node.group().leader
    again = Member(node, instance="i").join(may_skip=may_skip)
    answer = again.joined[-1]
    assert (answer.skip_assignment, bool(answer.members)) == (may_skip, may_skip)
    assert answer.leader == (again.member_id if may_skip else first_id)


def test_a_static_member_with_another_protocol_begins_a_rebalance() -> None:
    node = Node()
    stable(node, Member(node, instance="i"))
    again = Member(node, instance="i", protocols=(("sticky", b""), ("range", b"")))
    assert again.join().error == E.NONE
    assert (again.joined[-1].protocol, again.generation) == ("sticky", 2)


def test_a_request_of_a_replaced_instance_that_waits_is_fenced() -> None:
    node = Node()
    _, first = stable(node, Member(node), Member(node, instance="i"))
    Member(node).join()
    first.join()
    Member(node, instance="i").join()
    assert first.error == E.FENCED_INSTANCE_ID


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    node = Node()
    stable(node, Member(node, instance="i"))
    found: list[object] = []
    for member_id, instance in (("", "another"), ("wrong", "i"), ("", "i")):
        leaving = [Identity("g", -1, member_id, instance)]
        node.coordinator.leave("g", leaving, lambda *answer: found.append(answer), node.now_ms)
    errors = (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.NONE)
    assert (found, node.state) == ([(E.NONE, [error]) for error in errors], "Empty")


def test_static_members_stay_when_they_do_not_join_again() -> None:
    node = Node()
    leader, _ = stable(
        node, Member(node, session_ms=500_000), Member(node, instance="i", session_ms=500_000)
    )
    leader.join()
    node.wait(60_001)
    assert (leader.generation, len(node.group().members)) == (2, 2)
