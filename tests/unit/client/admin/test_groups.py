"""Groups of both protocols, and their offsets."""

from __future__ import annotations

import pytest

from tests.unit.client.admin.conftest import Cluster
from txnkafka.client.admin import Admin, GroupListing, MemberToRemove
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.errors import KafkaError, UnknownMemberIdError, UnknownTopicOrPartitionError
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.join_group import JoinGroupRequestProtocol
from txnkafka.wire.messages.sync_group import SyncGroupRequestAssignment
from txnkafka.wire.records.consumer_protocol import encode_assignment

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 1)
INSTANCE = "shop-1"


def join_classic(cluster: Cluster, group_id: str, instance: str | None = INSTANCE) -> str:
    """Join as the one member of a classic group, which reads orders-0 and orders-1; returns the member id."""
    cluster.send("FindCoordinator", key_type=0, coordinator_keys=(group_id,))
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"),)
    fields = {
        "group_id": group_id, "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer", "group_instance_id": instance, "protocols": protocols,
    }  # fmt: skip
    joined = cluster.send("JoinGroup", **fields)
    if joined.error_code == 79:  # MEMBER_ID_REQUIRED
        joined = cluster.send("JoinGroup", member_id=joined.member_id, **fields)
    assert joined.error_code == 0
    assignment = encode_assignment([("orders", [0, 1])], 3)
    synced = cluster.send(
        "SyncGroup", group_id=group_id, generation_id=joined.generation_id, member_id=joined.member_id,
        group_instance_id=instance, protocol_type="consumer", protocol_name="range",
        assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment),),
    )  # fmt: skip
    assert synced.error_code == 0
    return str(joined.member_id)


def join_consumer(cluster: Cluster, group_id: str, member_id: str = "m" * 22) -> None:
    """Join a group of the consumer protocol (KIP-848)."""
    cluster.send("FindCoordinator", key_type=0, coordinator_keys=(group_id,))
    answer = cluster.send(
        "ConsumerGroupHeartbeat", group_id=group_id, member_id=member_id, member_epoch=0,
        rebalance_timeout_ms=30_000, subscribed_topic_names=("orders",), topic_partitions=(),
    )  # fmt: skip
    assert answer.error_code == 0


def test_groups_are_listed_by_state_and_type(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders", partitions=2)
    admin.alter_group_offsets("idle", {ORDERS: 0})
    join_classic(cluster, "classic")
    join_consumer(cluster, "modern")
    listed = admin.list_groups()
    assert listed == [
        GroupListing("classic", "consumer", "Stable", "classic"),
        GroupListing("idle", "", "Empty", "classic"),
        GroupListing("modern", "consumer", "Stable", "consumer"),
    ]
    assert admin.list_groups(states=["Empty"]) == [listed[1]]
    assert admin.list_groups(types=["consumer"]) == [listed[2]]


def test_a_classic_group_is_described(admin: Admin, cluster: Cluster) -> None:
    member_id = join_classic(cluster, "readers")
    group = admin.describe_groups("readers")["readers"]
    assert group[:6] == ("readers", "classic", "Stable", "consumer", "range", 1)
    (member,) = group.members
    assert member[:4] == (member_id, INSTANCE, "another", member.host)
    assert member.assignment == (ORDERS, TopicPartition("orders", 1))
    assert (member.target_assignment, member.epoch, group.group_epoch) == (None, None, None)


def test_a_group_of_the_consumer_protocol_is_described(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders", partitions=2)
    join_consumer(cluster, "modern")
    described = admin.describe_groups(["modern"])
    group = described["modern"]
    assert group[:6] == ("modern", "consumer", "Stable", "consumer", "uniform", 1)
    assert group.group_epoch == group.assignment_epoch
    (member,) = group.members
    assert (member.epoch, member.subscription) == (group.group_epoch, ("orders",))
    assert member.target_assignment == (ORDERS, TopicPartition("orders", 1))


def test_groups_of_both_protocols_in_one_call(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    join_consumer(cluster, "modern")
    join_classic(cluster, "classic")
    described = admin.describe_groups(["classic", "modern"])
    assert [(name, group.type) for name, group in described.items()] == [
        ("classic", "classic"), ("modern", "consumer"),
    ]  # fmt: skip


def test_a_missing_group(admin: Admin) -> None:
    message = r"^group gone: .*GROUP_ID_NOT_FOUND.*; list_groups has the existing groups$"
    with pytest.raises(KafkaError, match=message):
        admin.describe_groups("gone")
    with pytest.raises(KafkaError, match=message):
        admin.delete_groups("gone")
    assert admin.list_group_offsets("gone") == {}


def test_groups_without_members_are_deleted(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    admin.alter_group_offsets("idle", {ORDERS: 0})
    join_classic(cluster, "busy")
    with pytest.raises(KafkaError, match=r"^group busy: .*NON_EMPTY_GROUP.*stop its members first"):
        admin.delete_groups(["busy", "idle"])
    assert [each.group_id for each in admin.list_groups()] == ["busy"]


@pytest.mark.parametrize("instance", [INSTANCE, None])
def test_all_members_are_removed(admin: Admin, cluster: Cluster, instance: str | None) -> None:
    join_classic(cluster, "readers", instance)
    admin.remove_members("readers", reason="maintenance")
    assert admin.describe_groups("readers")["readers"].members == ()
    admin.remove_members("readers")
    admin.delete_groups("readers")


def test_a_member_is_removed_by_instance(admin: Admin, cluster: Cluster) -> None:
    join_classic(cluster, "readers")
    with pytest.raises(UnknownMemberIdError, match="group readers, member shop-2: UNKNOWN_MEMBER_ID"):
        admin.remove_members("readers", [MemberToRemove("shop-2"), MemberToRemove(INSTANCE)])
    assert admin.describe_groups("readers")["readers"].state == "Empty"


def test_offsets_are_committed_listed_and_deleted(admin: Admin) -> None:
    admin.create_topic("orders")
    admin.create_topic("bills", partitions=2)
    admin.alter_group_offsets("readers", {ORDERS: 3, BILLS: OffsetAndMetadata(5, "by hand", 0)})
    assert admin.list_group_offsets("readers") == {
        ORDERS: OffsetAndMetadata(3), BILLS: OffsetAndMetadata(5, "by hand", 0),
    }  # fmt: skip
    assert admin.list_group_offsets("readers", [ORDERS, ("orders", 7)], require_stable=True) == {
        ORDERS: OffsetAndMetadata(3)
    }
    admin.delete_group_offsets("readers", [ORDERS])
    assert list(admin.list_group_offsets("readers")) == [BILLS]


def test_offsets_of_a_missing_partition(admin: Admin) -> None:
    admin.create_topic("orders")
    gone = TopicPartition("orders", 9)
    with pytest.raises(UnknownTopicOrPartitionError, match=r"^group readers, orders-9: "):
        admin.alter_group_offsets("readers", {gone: 0, ORDERS: 1})
    assert admin.list_group_offsets("readers") == {ORDERS: OffsetAndMetadata(1)}
    with pytest.raises(UnknownTopicOrPartitionError, match=r"^group readers, orders-9: "):
        admin.delete_group_offsets("readers", [gone, ORDERS])
    assert admin.list_group_offsets("readers") == {}


def test_offsets_of_a_group_with_members(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    join_classic(cluster, "readers")
    with pytest.raises(UnknownMemberIdError, match=r"^group readers, orders-0: .*stop them$"):
        admin.alter_group_offsets("readers", {ORDERS: 0})
    with pytest.raises(KafkaError, match=r"^group readers, orders-0: GROUP_SUBSCRIBED_TO_TOPIC"):
        admin.delete_group_offsets("readers", [ORDERS])


def test_calls_without_work_send_nothing(admin: Admin) -> None:
    admin.alter_group_offsets("readers", {})
    admin.delete_group_offsets("readers", [])
    assert admin.describe_groups([]) == {}
    assert admin.list_groups() == []
