"""The broker that gets a request, and the errors that lead to another request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fakes import FakeTransport, Request
from txnkafka.client.admin import Admin, ConfigResource, ConfigResourceType, MemberToRemove, OffsetSpec
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, KafkaTimeoutError, NetworkError, UnsupportedVersionError
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from txnkafka.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from txnkafka.wire.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from txnkafka.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from txnkafka.wire.messages.leave_group import LeaveGroupResponse
from txnkafka.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from txnkafka.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from txnkafka.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
LATEST = dict.fromkeys(PARTITIONS, OffsetSpec.LATEST)


def admin_over(transport: FakeTransport, **settings: Any) -> Admin:
    return Admin(settings, transport=transport.for_client)


def created(*codes: int) -> Any:
    """Answer CreateTopics with one code after the other."""
    left = list(codes)

    def answer(request: Request) -> CreateTopicsResponse:
        code = left.pop(0)
        topics = tuple(
            CreatableTopicResult(name=each.name, error_code=code) for each in request.message.topics
        )
        return CreateTopicsResponse(topics=topics)

    return answer


def offsets(codes: dict[tuple[int, int], list[int]]) -> Any:
    """Answer ListOffsets with the codes of (node, partition), one after the other; without one, offset 7."""

    def answer(request: Request) -> ListOffsetsResponse:
        rows = []
        for each in request.message.topics[0].partitions:
            left = codes.get((request.node_id, each.partition_index))
            code = left.pop(0) if left else 0
            rows.append(
                ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=code, offset=7)
            )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="orders", partitions=tuple(rows)),))

    return answer


def asked(transport: FakeTransport) -> list[tuple[int, list[int]]]:
    """The nodes and partitions of all ListOffsets requests."""
    return [
        (each.node_id, [row.partition_index for row in each.message.topics[0].partitions])
        for each in transport.sent("ListOffsets")
    ]


def test_the_controller_is_looked_up_again() -> None:
    transport = FakeTransport(nodes=2)
    transport.answers["CreateTopics"] = created(ErrorCode.NOT_CONTROLLER, ErrorCode.NONE)
    with admin_over(transport) as admin:
        admin.create_topic("orders")
    assert [each.node_id for each in transport.sent("CreateTopics")] == [0, 0]
    assert len(transport.sent("Metadata")) == 2


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_ALREADY_EXISTS])
def test_a_creation_that_may_have_happened_is_not_repeated(code: ErrorCode) -> None:
    transport = FakeTransport()
    transport.answers["CreateTopics"] = created(code)
    with admin_over(transport) as admin, pytest.raises(KafkaError, match=f"topic orders: {code.name}"):
        admin.create_topic("orders")


def test_a_lost_connection_is_repeated() -> None:
    transport = FakeTransport()
    answers = [NetworkError("gone"), None]

    def answer(request: Request) -> Any:
        return answers.pop(0) or created(0)(request)

    transport.answers["CreateTopics"] = answer
    with admin_over(transport) as admin:
        admin.create_topic("orders")
    assert answers == []


def test_each_leader_gets_its_partitions() -> None:
    transport = FakeTransport({"orders": 3}, nodes=2)
    transport.leaders[PARTITIONS[1]] = 1
    transport.answers["ListOffsets"] = offsets({})
    with admin_over(transport) as admin:
        found = admin.list_offsets(LATEST)
    assert list(found) == PARTITIONS
    assert {each.offset for each in found.values()} == {7}
    assert asked(transport) == [(0, [0, 2]), (1, [1])]


def test_only_the_partitions_that_failed_are_asked_for_again() -> None:
    transport = FakeTransport({"orders": 3}, nodes=2)
    moved = [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    def answer(request: Request) -> Any:
        transport.leaders[PARTITIONS[2]] = 1  # before the next lookup
        return offsets({(0, 2): moved})(request)

    transport.answers["ListOffsets"] = answer
    with admin_over(transport) as admin:
        assert len(admin.list_offsets(LATEST)) == 3
    assert asked(transport) == [(0, [0, 1, 2]), (1, [2])]


def test_partitions_that_fail_for_good_do_not_hold_up_the_others() -> None:
    transport = FakeTransport({"orders": 3})
    refused = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    passing = [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    transport.answers["ListOffsets"] = offsets({(0, 0): refused, (0, 1): passing})
    message = "^orders-0: TOPIC_AUTHORIZATION_FAILED; ask the operator"
    with admin_over(transport) as admin, pytest.raises(KafkaError, match=message):
        admin.list_offsets(LATEST)
    assert asked(transport) == [(0, [0, 1, 2]), (0, [1]), (0, [1])]


def test_a_topic_that_may_be_new_is_looked_up_for_a_second() -> None:
    transport = FakeTransport({"orders": 1})
    transport.answers["ListOffsets"] = offsets({(0, 0): [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2})
    with admin_over(transport) as admin:
        admin.list_offsets({PARTITIONS[0]: OffsetSpec.LATEST})
        began_ms = transport.reactor.now_ms()
        with pytest.raises(KafkaError, match="topic gone: UNKNOWN_TOPIC_OR_PARTITION"):
            admin.list_offsets({TopicPartition("gone", 0): OffsetSpec.LATEST})
        assert 1_000 <= transport.reactor.now_ms() - began_ms < 5_000


def test_an_error_that_does_not_pass_in_time() -> None:
    transport = FakeTransport({"orders": 3})
    transport.answers["ListOffsets"] = offsets({(0, 1): [ErrorCode.LEADER_NOT_AVAILABLE] * 100})
    message = "^ListOffsets of partition orders-1 failed for 3000 ms: orders-1: LEADER_NOT_AVAILABLE$"
    with (
        admin_over(transport, default_api_timeout_ms=3_000) as admin,
        pytest.raises(KafkaTimeoutError, match=message) as caught,
    ):
        admin.list_offsets(LATEST)
    assert isinstance(caught.value.__cause__, KafkaError)
    assert caught.value.__cause__.code is ErrorCode.LEADER_NOT_AVAILABLE
    assert not hasattr(caught.value, "__notes__")


def test_a_broker_without_an_answer() -> None:
    transport = FakeTransport()
    transport.answers["CreateTopics"] = lambda request: None
    began_ms = transport.reactor.now_ms()
    with (
        admin_over(transport, default_api_timeout_ms=3_000, request_timeout_ms=2_000) as admin,
        pytest.raises(KafkaTimeoutError, match="did not answer CreateTopics in time"),
    ):
        admin.create_topic("orders")
    assert 2_000 < transport.reactor.now_ms() - began_ms < 4_000
    assert len(transport.sent("CreateTopics")) == 2


def test_an_answer_without_the_topic() -> None:
    transport = FakeTransport()
    transport.answers["CreateTopics"] = lambda request: CreateTopicsResponse()
    with admin_over(transport) as admin, pytest.raises(KafkaError, match="has not answered CreateTopics of"):
        admin.create_topic("orders")


def test_an_old_broker() -> None:
    transport = FakeTransport({"orders": 3}, versions={"ListOffsets": 6})
    with (
        admin_over(transport) as admin,
        pytest.raises(UnsupportedVersionError, match="supports ListOffsets in versions 1 to 6; 7 to 11"),
    ):
        admin.list_offsets(dict.fromkeys(PARTITIONS, OffsetSpec.MAX_TIMESTAMP))


@pytest.fixture
def coordinators() -> FakeTransport:
    """Two nodes; the coordinator of a group is the node in ``places``."""
    transport = FakeTransport(nodes=2)
    places = {"a": 0, "b": 1}

    def find(request: Request) -> FindCoordinatorResponse:
        (key,) = request.message.coordinator_keys
        node = transport.nodes[places[key]]
        found = Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)
        return FindCoordinatorResponse(coordinators=(found,))

    def delete(request: Request) -> DeleteGroupsResponse:
        moved = request.node_id == 0 and places["a"] == 0
        if moved:
            places["a"] = 1
        code = ErrorCode.NOT_COORDINATOR if moved else ErrorCode.NONE
        return DeleteGroupsResponse(
            results=tuple(
                DeletableGroupResult(group_id=each, error_code=code) for each in request.message.groups_names
            )
        )

    transport.answers |= {"FindCoordinator": find, "DeleteGroups": delete}
    return transport


def test_the_coordinator_of_each_group_is_found_again(coordinators: FakeTransport) -> None:
    with admin_over(coordinators) as admin:
        admin.delete_groups(["a", "b"])
    sent = [(each.node_id, each.message.groups_names) for each in coordinators.sent("DeleteGroups")]
    assert sent == [(0, ("a",)), (1, ("b",)), (1, ("a",))]
    assert len(coordinators.sent("FindCoordinator")) == 3


def test_a_coordinator_that_loads_its_log_is_asked_again() -> None:
    """The error is that of the partitions."""
    transport = FakeTransport({"orders": 1})
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]

    def answer(request: Request) -> OffsetCommitResponse:
        rows = (OffsetCommitResponsePartition(partition_index=0, error_code=codes.pop(0)),)
        return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="orders", partitions=rows),))

    transport.answers["OffsetCommit"] = answer
    with admin_over(transport) as admin:
        admin.alter_group_offsets("readers", {PARTITIONS[0]: 5})
    assert codes == []
    (row,) = transport.sent("OffsetCommit")[1].message.topics[0].partitions
    assert (row.committed_offset, row.committed_leader_epoch, row.committed_metadata) == (5, -1, "")


def test_a_member_is_named_by_instance_or_by_id() -> None:
    """A static member may have got another id since."""
    transport = FakeTransport()
    transport.answers["LeaveGroup"] = lambda request: LeaveGroupResponse()
    with admin_over(transport) as admin:
        admin.remove_members("readers", [MemberToRemove("shop-1", "m-1"), MemberToRemove(member_id="m-2")])
    (request,) = transport.sent("LeaveGroup")
    named = [(each.group_instance_id, each.member_id) for each in request.message.members]
    assert named == [("shop-1", ""), (None, "m-2")]


def test_all_brokers_are_asked_for_groups() -> None:
    transport = FakeTransport(nodes=3)

    def answer(request: Request) -> ListGroupsResponse:
        return ListGroupsResponse(groups=(ListedGroup(group_id=f"g{2 - request.node_id}"),))

    transport.answers["ListGroups"] = answer
    with admin_over(transport) as admin:
        assert [each.group_id for each in admin.list_groups()] == ["g0", "g1", "g2"]


def test_the_settings_of_a_broker_are_asked_of_it() -> None:
    transport = FakeTransport(nodes=3)

    def answer(request: Request) -> DescribeConfigsResponse:
        rows = tuple(
            DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name)
            for each in request.message.resources
        )
        return DescribeConfigsResponse(results=rows)

    transport.answers["DescribeConfigs"] = answer
    broker = ConfigResource(ConfigResourceType.BROKER, "2")
    with admin_over(transport) as admin:
        admin.describe_configs([broker])
        message = r"^DescribeConfigs of resource broker 5 failed for .* node 5 is not in the metadata"
        with pytest.raises(KafkaTimeoutError, match=message):
            admin.describe_configs([broker._replace(name="5")])
    assert [each.node_id for each in transport.sent("DescribeConfigs")] == [2]
