"""Groups that change their protocol, and members of the classic protocol in consumer groups (KIP-848)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.coordinator.consumer_clients import Consumer, ConsumerNode, config, subscription, topic_id
from tests.unit.coordinator.group_clients import Member
from txnkafka.coordinator.group.classic.classic_group import ClassicGroup
from txnkafka.coordinator.group.consumer.consumer_config import MigrationPolicy
from txnkafka.error_codes import ErrorCode as E
from txnkafka.wire.records.consumer_protocol import decode_assignment


def classic(node: ConsumerNode, last: int = 1, **changes: Any) -> Member:
    """A member of the classic protocol with a generation of its own, which has the partitions 0 and
    ``last``."""
    member = Member(node, protocols=(("range", subscription("t")),), **changes)
    member.join()
    node.wait(0)
    numbers = (2).to_bytes(4, "big") + bytes(4) + last.to_bytes(4, "big", signed=True)
    assignment = b"\0\0" + (1).to_bytes(4, "big") + b"\0\1t" + numbers
    return member.sync(**{member.member_id.replace("-", "_"): assignment + b"\xff" * 4})


def partitions(assignment: bytes) -> list[int]:
    fields = decode_assignment(assignment)
    assert fields is not None
    return [number for each in fields["assigned_partitions"] for number in each["partitions"]]


def test_a_classic_group_becomes_a_consumer_group_and_comes_back() -> None:
    node = ConsumerNode({"t": 2})
    old = classic(node)
    assert (old.error, partitions(old.synced[-1].assignment)) == (E.NONE, [0, 1])
    new = Consumer(node, "new").join()
    assert (new.error, new.epoch, new.has) == (E.NONE, 2, [])
    assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
    assert old.sync().synced[-1].error == E.REBALANCE_IN_PROGRESS
    old.protocols = (("range", subscription("t", owned=[0, 1])),)
    old.join()
    assert (old.error, old.generation) == (E.NONE, 1)  # it has to give one up first
    (kept,) = partitions(old.sync().synced[-1].assignment)
    assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
    old.protocols = (("range", subscription("t", owned=[kept])),)
    old.join()
    assert (old.generation, partitions(old.sync().synced[-1].assignment)) == (2, [kept])
    assert new.follow().has == [(1, 1 - kept)]
    assert (old.heartbeat(), node.consumers().state) == (E.NONE, "Stable")
    assert new.leave().error == E.NONE
    assert (old.heartbeat(), node.state) == (E.REBALANCE_IN_PROGRESS, "PreparingRebalance")
    old.join()
    assert (old.error, old.generation, node.state) == (E.NONE, 3, "CompletingRebalance")


def test_a_classic_member_is_told_to_join_when_its_partition_becomes_free() -> None:
    node = ConsumerNode({"t": 2})
    owner = Consumer(node, "a").join()
    classic_member = Member(node, protocols=(("range", subscription("t", owned=[])),))
    classic_member.join()
    assert partitions(classic_member.sync().synced[-1].assignment) == []
    assert classic_member.heartbeat() == E.NONE, "the other one has all partitions"
    owner.beat()
    assert classic_member.heartbeat() == E.NONE, "it has one to give up"
    owner.follow()
    assert classic_member.heartbeat() == E.REBALANCE_IN_PROGRESS
    classic_member.join()
    assert len(partitions(classic_member.sync().synced[-1].assignment)) == 1
    assert classic_member.heartbeat() == E.NONE


def test_a_restart_behind_the_conversion_to_a_classic_group_rebalances_it() -> None:
    """The partitions of the member that left are nobody's until then, and nobody else comes or goes."""
    node = ConsumerNode({"t": 2})
    old, new = classic(node), Consumer(node, "new").join()
    old.protocols = (("range", subscription("t", owned=[])),)
    old.join()
    assert new.leave().error == E.NONE
    assert node.state == "PreparingRebalance"
    node.start()
    assert (node.state, old.heartbeat()) == ("PreparingRebalance", E.REBALANCE_IN_PROGRESS)
    old.join()
    old.sync(**{old.member_id.replace("-", "_"): b""})
    assert (old.error, node.state) == (E.NONE, "Stable")
    node.start()
    assert (node.state, old.heartbeat()) == ("Stable", E.NONE)


@pytest.mark.parametrize("topics", [("t",), ("t", "u")])
@pytest.mark.parametrize("last", [-1, 9])
def test_partitions_that_there_are_not_are_nobodys(last: int, topics: tuple[str, ...]) -> None:
    """The leader of a classic group assigns what it likes."""
    node = ConsumerNode({"t": 3, "u": 1})
    old = classic(node, last)
    new = Consumer(node, "new", topics=topics).join()
    assert new.error == E.NONE
    targets = node.consumers().targets.values()
    found = sorted(number for target in targets for number in target.get(topic_id(1), ()))
    assert (found, old.heartbeat()) == ([0, 1, 2], E.REBALANCE_IN_PROGRESS)


def test_the_last_consumer_that_is_replaced_by_a_classic_member() -> None:
    node = ConsumerNode({"t": 2})
    Consumer(node, "new", instance="i").join()
    old = Member(node, instance="i", protocols=(("range", subscription("t")),)).join()
    assert (old.error, node.state) == (E.NONE, "Stable")
    assert partitions(old.sync().synced[-1].assignment) == [0, 1]


@pytest.mark.parametrize("policy", ["upgrade", "downgrade", "disabled"])
def test_the_policy_says_what_may_change(policy: str) -> None:
    node = ConsumerNode({"t": 2}, consumer=config(migration_policy=MigrationPolicy(policy)))
    classic(node)
    new = Consumer(node, "new").join()
    assert new.error == (E.NONE if policy == "upgrade" else E.GROUP_ID_NOT_FOUND)
    other = Consumer(node, "other", group="h").join()
    joined = Member(node, group="h", protocols=(("range", subscription("t")),)).join()
    assert joined.error == (E.INCONSISTENT_GROUP_PROTOCOL if policy == "disabled" else E.NONE)
    other.leave()
    found = node.coordinator.partitions.find("h")
    assert isinstance(found, ClassicGroup) == (policy == "downgrade")


def test_a_group_of_another_protocol_is_not_taken_over() -> None:
    node = ConsumerNode({"t": 1})
    Member(node, protocol_type="connect").join()
    new = Consumer(node, "new").join()
    assert new.error == E.GROUP_ID_NOT_FOUND
    assert "does not use the consumer embedded protocol" in str(new.answers[-1].message)


def test_members_that_wait_when_a_group_changes_its_protocol_join_again() -> None:
    node = ConsumerNode({"t": 1}, initial_rebalance_delay_ms=0)
    old = classic(node)
    other = Member(node, protocols=(("range", subscription("t")),)).join()
    assert other.joined == []  # it waits for the first one
    assert Consumer(node, "new").join().error == E.NONE
    assert other.error == E.REBALANCE_IN_PROGRESS
    assert sorted(node.consumers().members) == sorted(["new", old.member_id, other.member_id])


def test_an_empty_consumer_group_becomes_a_classic_one() -> None:
    node = ConsumerNode({"t": 1})
    Consumer(node, "new").join().leave()
    old = Member(node, protocols=(("range", subscription("t")),)).join()
    node.wait(0)
    assert (old.error, old.generation) == (E.NONE, 1)
    node.start()
    assert node.state == "Empty"  # nobody has got an assignment yet


def test_a_classic_member_that_does_not_come_back_is_removed() -> None:
    node = ConsumerNode({"t": 2})
    old = classic(node, rebalance_ms=20_000, session_ms=30_000)
    new = Consumer(node, "new").join()
    for _ in range(5):
        old.heartbeat()
        new.follow()
        node.wait(4_000)
    assert list(node.consumers().members) == ["new"]
    assert new.follow().has == [(1, 0), (1, 1)]


def test_a_member_of_a_consumer_group_has_left_when_that_is_durable() -> None:
    node = ConsumerNode({"t": 2})
    old = classic(node)
    Consumer(node, "new").join()
    old.generation = node.consumers().members[old.member_id].epoch
    node.fails = True
    assert old.leave() == E.NOT_COORDINATOR
    assert old.member_id in node.consumers().members
    node.fails, node.waits = False, True
    assert old.leave() is None
    node.waits = False
    node.settle()
    assert list(node.consumers().members) == ["new"]
