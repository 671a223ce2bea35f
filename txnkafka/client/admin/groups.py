"""Groups: list, describe, delete, and remove members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.admin.call import Call, Calls
from txnkafka.client.admin.group_types import (
    GroupDescription,
    GroupListing,
    MemberDescription,
    MemberToRemove,
)
from txnkafka.client.admin.names import names_of
from txnkafka.client.admin.refusals import checked, refusal
from txnkafka.client.admin.route import GROUP, NODE
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from txnkafka.wire.messages.delete_groups import DeleteGroupsRequest
from txnkafka.wire.messages.describe_groups import DescribeGroupsRequest
from txnkafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from txnkafka.wire.messages.list_groups import ListGroupsRequest
from txnkafka.wire.records.consumer_protocol import PROTOCOL_TYPE, decode_assignment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CLASSIC: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""Errors of ConsumerGroupDescribe for groups of the classic protocol."""
_DEAD: Final = "Dead"
_STATES_SINCE, _TYPES_SINCE = 4, 5  # of ListGroups
_REASON: Final = "member was removed by an admin client"


class GroupCalls(Calls):
    """A part of ``AdminCore``."""

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[GroupListing]:
        """Return the groups of all brokers, by name; with ``states`` such as ``Stable`` and ``Empty``, and
        ``types`` such as ``consumer``, only those."""
        wanted = tuple(states), tuple(types)

        def request(keys: Sequence[int], version: int) -> ListGroupsRequest:
            return ListGroupsRequest(states_filter=wanted[0], types_filter=wanted[1])

        since = _TYPES_SINCE if wanted[1] else _STATES_SINCE if wanted[0] else 0
        call = Call("ListGroups", NODE, "node", request, _listed, at_least=since)
        found = await self.results(call, await self.nodes())
        return sorted(group for groups in found.values() for group in groups)

    async def describe_groups(self, groups: str | Iterable[str]) -> dict[str, GroupDescription]:
        """Return groups with their members, by name, of the classic protocol and of KIP-848.

        Raises GroupIdNotFoundError (KafkaError with the code GROUP_ID_NOT_FOUND)."""
        names = names_of(groups)
        found = await self.outcomes(_CONSUMER_GROUPS, names)
        others = [
            name
            for name, outcome in found.items()
            if isinstance(outcome, KafkaError) and outcome.code in _CLASSIC
        ]
        classic = await self.outcomes(_CLASSIC_GROUPS, others)
        described = checked({**found, **classic})
        return {
            name: group._replace(coordinator=(await self.cluster.coordinator(0, name)).node.node_id)
            for name, group in described.items()
        }

    async def delete_groups(self, groups: str | Iterable[str]) -> None:
        """Delete groups without members, with their committed offsets (KIP-229).

        Raises NonEmptyGroupError for a group with members, GroupIdNotFoundError; the others are deleted."""
        await self.results(_DELETION, names_of(groups))

    async def remove_members(
        self, group_id: str, members: Iterable[MemberToRemove] | None = None, *, reason: str = ""
    ) -> None:
        """Remove members from a group of the classic protocol, by default all of them. A process that still
        runs joins the group again (KIP-345).

        Raises UnknownMemberIdError for a member that the group does not have; the others are removed."""
        if members is None:
            described = (await self.describe_groups(group_id))[group_id]
            members = [MemberToRemove(each.group_instance_id, each.member_id) for each in described.members]
        leaving = [_identity(each, reason) for each in members]
        if not leaving:
            return

        def request(keys: Sequence[str], version: int) -> LeaveGroupRequest:
            return LeaveGroupRequest(group_id=group_id, members=tuple(leaving))

        call = Call("LeaveGroup", GROUP, "group", request, _left, is_single=True, at_least=3)
        outcomes = await self.result(call, group_id)
        checked(outcomes)


def _listed(response: Any, keys: Sequence[int]) -> Iterator[tuple[int, list[GroupListing] | KafkaError]]:
    error = refusal(response.error_code, f"the groups of broker {keys[0]}")
    rows = [
        GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type)
        for each in response.groups
    ]
    yield keys[0], error or rows


def _ask_consumer(names: Sequence[str], version: int) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=tuple(names))


def _consumer(response: Any, names: Sequence[str]) -> Iterator[tuple[str, GroupDescription | KafkaError]]:
    for each in response.groups:
        error = refusal(each.error_code, f"group {each.group_id}", each.error_message)
        members = tuple(map(_consumer_member, each.members))
        yield each.group_id, error or GroupDescription(
            each.group_id, "consumer", each.group_state, PROTOCOL_TYPE, each.assignor_name, -1, members,
            each.group_epoch, each.assignment_epoch,
        )  # fmt: skip


def _consumer_member(member: Any) -> MemberDescription:
    topics = member.subscribed_topic_names
    if member.subscribed_topic_regex:
        topics = (*topics, member.subscribed_topic_regex)
    return MemberDescription(
        member.member_id, member.instance_id, member.client_id, member.client_host,
        _assigned(member.assignment), _assigned(member.target_assignment), member.member_epoch, topics,
    )  # fmt: skip


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _ask_classic(names: Sequence[str], version: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=tuple(names))


def _classic(response: Any, names: Sequence[str]) -> Iterator[tuple[str, GroupDescription | KafkaError]]:
    for each in response.groups:
        code = each.error_code
        if not code and each.group_state == _DEAD:  # a missing group, before version 6 (KIP-1043)
            code = ErrorCode.GROUP_ID_NOT_FOUND
        error = refusal(code, f"group {each.group_id}", each.error_message)
        members = tuple(
            MemberDescription(
                member.member_id, member.group_instance_id, member.client_id, member.client_host,
                _decoded(each.protocol_type, member.member_assignment),
            )
            for member in each.members
        )  # fmt: skip
        yield (
            each.group_id,
            error
            or GroupDescription(
                each.group_id,
                "classic",
                each.group_state,
                each.protocol_type,
                each.protocol_data,
                -1,
                members,
            ),
        )


def _decoded(protocol_type: str, assignment: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions in an assignment; none for another protocol, such as that of Kafka Connect."""
    found = decode_assignment(assignment) if protocol_type == PROTOCOL_TYPE else None
    if found is None:
        return ()
    return tuple(
        TopicPartition(topic["topic"], number)
        for topic in found["assigned_partitions"]
        for number in topic["partitions"]
    )


def _ask_deletion(names: Sequence[str], version: int) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=tuple(names))


def _deleted(response: Any, names: Sequence[str]) -> Iterator[tuple[str, KafkaError | None]]:
    for each in response.results:
        yield each.group_id, refusal(each.error_code, f"group {each.group_id}", each.error_message)


def _identity(member: MemberToRemove, reason: str) -> MemberIdentity:
    text = f"{_REASON}: {reason}" if reason else _REASON
    member_id = "" if member.group_instance_id is not None else member.member_id
    return MemberIdentity(member_id=member_id, group_instance_id=member.group_instance_id, reason=text)


def _left(
    response: Any, keys: Sequence[str]
) -> Iterator[tuple[str, dict[str, KafkaError | None] | KafkaError]]:
    error = refusal(response.error_code, f"group {keys[0]}")
    members = {
        name: refusal(each.error_code, f"group {keys[0]}, member {name}")
        for each in response.members
        if (name := each.group_instance_id or each.member_id)
    }
    yield keys[0], error or members


_CONSUMER_GROUPS: Final = Call("ConsumerGroupDescribe", GROUP, "group", _ask_consumer, _consumer)
_CLASSIC_GROUPS: Final = Call("DescribeGroups", GROUP, "group", _ask_classic, _classic)
_DELETION: Final = Call("DeleteGroups", GROUP, "group", _ask_deletion, _deleted)
