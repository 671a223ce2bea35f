"""Memberships over scripted answers: the requests of both protocols, and errors of the coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.consumer.scripts import PARTITION
from tests.unit.client.consumer.test_commits import Coordinator
from txnkafka.client.consumer import Consumer
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from txnkafka.wire.messages.heartbeat import HeartbeatResponse
from txnkafka.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from txnkafka.wire.messages.leave_group import LeaveGroupResponse
from txnkafka.wire.messages.sync_group import SyncGroupResponse
from txnkafka.wire.records.consumer_protocol import decode_subscription


class Classic(Coordinator):
    """One member, ``m``, which leads. Lists of errors are used up first."""

    def __init__(self, **options: Any) -> None:
        super().__init__(partitions=2, **options)
        self.join_errors: list[ErrorCode] = []
        self.sync_errors: list[ErrorCode] = []
        self.beat_errors: list[ErrorCode] = []
        self.generation = 0
        answers = self.transport.answers
        answers["JoinGroup"], answers["SyncGroup"] = self._join, self._sync
        answers["Heartbeat"] = lambda _: HeartbeatResponse(
            error_code=self.beat_errors.pop(0) if self.beat_errors else 0
        )
        answers["LeaveGroup"] = lambda _: LeaveGroupResponse()

    def subscribed(self, **settings: Any) -> Consumer:
        given = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False, **settings}
        consumer = Consumer(given, transport=self.transport.for_client)
        consumer.subscribe("orders")
        return consumer

    def _join(self, request: Any) -> JoinGroupResponse:
        if self.join_errors:
            return JoinGroupResponse(error_code=self.join_errors.pop(0), member_id="m", protocol_name="")
        self.generation += 1
        metadata = bytes(request.message.protocols[0].metadata)
        return JoinGroupResponse(
            generation_id=self.generation, protocol_name=request.message.protocols[0].name, leader="m",
            member_id="m", members=(JoinGroupResponseMember(member_id="m", metadata=metadata),),
        )  # fmt: skip

    def _sync(self, request: Any) -> SyncGroupResponse:
        if self.sync_errors:
            return SyncGroupResponse(error_code=self.sync_errors.pop(0), assignment=b"")
        (row,) = request.message.assignments
        return SyncGroupResponse(assignment=row.assignment)


BOTH = {TopicPartition("orders", 0), TopicPartition("orders", 1)}


def joined(consumer: Consumer) -> None:
    for _ in range(100):
        if consumer.assignment() == BOTH:
            return
        consumer.poll(100)
    raise AssertionError(consumer.assignment())


def test_a_member_joins_with_the_id_that_it_gets() -> None:
    broker = Classic()
    broker.join_errors = [ErrorCode.MEMBER_ID_REQUIRED]
    with broker.subscribed() as consumer:
        joined(consumer)
        assert consumer.group_metadata() == ("g", 1, "m", None)
    joins = [each.message for each in broker.transport.sent("JoinGroup")]
    assert [each.member_id for each in joins] == ["", "m"]
    assert (joins[0].session_timeout_ms, joins[0].rebalance_timeout_ms) == (45_000, 300_000)
    assert [each.name for each in joins[0].protocols] == ["range", "cooperative-sticky"]
    fields = decode_subscription(bytes(joins[0].protocols[0].metadata))
    assert fields is not None
    assert fields["topics"] == ["orders"]
    (left,) = broker.transport.sent("LeaveGroup")
    assert [each.member_id for each in left.message.members] == ["m"]


@pytest.mark.parametrize(
    "error",
    [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID,
     ErrorCode.REBALANCE_IN_PROGRESS],
)  # fmt: skip
@pytest.mark.parametrize("request_", ["join_errors", "sync_errors"])
def test_joining_is_repeated(error: ErrorCode, request_: str) -> None:
    broker = Classic()
    setattr(broker, request_, [error])
    with broker.subscribed() as consumer:
        joined(consumer)
    assert len(broker.transport.sent("JoinGroup")) == 2
    if error == ErrorCode.NOT_COORDINATOR:
        assert len(broker.transport.sent("FindCoordinator")) == 2


@pytest.mark.parametrize(
    "error", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
)
def test_an_error_that_stays_fails_poll_and_the_next_one_tries_again(error: ErrorCode) -> None:
    broker = Classic()
    broker.join_errors = [error]
    with broker.subscribed() as consumer:
        with pytest.raises(KafkaError, match=f"group 'g': JoinGroup: {error.name}"):
            consumer.poll(1_000)
        joined(consumer)


def test_heartbeats_are_sent_without_polls() -> None:
    broker = Classic()
    with broker.subscribed() as consumer:
        joined(consumer)
        consumer.poll(0)
        broker.transport.reactor.settle(30_000)
        beats = [each.message for each in broker.transport.sent("Heartbeat")]
        assert 9 <= len(beats) <= 11
        assert {(each.generation_id, each.member_id) for each in beats} == {(1, "m")}


def test_a_rebalance_waits_for_the_next_poll() -> None:
    broker = Classic()
    with broker.subscribed() as consumer:
        joined(consumer)
        broker.beat_errors = [ErrorCode.REBALANCE_IN_PROGRESS]
        broker.transport.reactor.settle(20_000)
        assert len(broker.transport.sent("JoinGroup")) == 1
        assert consumer.assignment() == BOTH
        for _ in range(5):
            consumer.poll(100)
        assert len(broker.transport.sent("JoinGroup")) == 2
        joined(consumer)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_member_that_was_removed_joins_again(error: ErrorCode) -> None:
    broker = Classic()
    with broker.subscribed() as consumer:
        joined(consumer)
        broker.beat_errors = [error]
        broker.transport.reactor.settle(4_000)
        assert consumer.group_metadata().generation_id == -1
        for _ in range(5):
            consumer.poll(100)
        joined(consumer)
        assert consumer.group_metadata().generation_id == 2
    ids = [each.message.member_id for each in broker.transport.sent("JoinGroup")]
    assert ids == ["", "" if error == ErrorCode.UNKNOWN_MEMBER_ID else "m"]


def test_a_static_member_does_not_leave() -> None:
    broker = Classic()
    with broker.subscribed(group_instance_id="i") as consumer:
        joined(consumer)
    assert broker.transport.sent("JoinGroup")[0].message.group_instance_id == "i"
    assert broker.transport.sent("LeaveGroup") == []


def test_a_leader_joins_again_when_partitions_are_added() -> None:
    broker = Classic()
    with broker.subscribed(metadata_max_age_ms=100) as consumer:
        joined(consumer)
        broker.transport.topics["orders"] = 3
        for _ in range(20):
            consumer.poll(100)
        assert len(consumer.assignment()) == 3


def test_the_commit_of_a_member_has_its_generation() -> None:
    broker = Classic()
    with broker.subscribed() as consumer:
        joined(consumer)
        consumer.commit({PARTITION: 1})
    message = broker.transport.sent("OffsetCommit")[0].message
    assert (message.generation_id_or_member_epoch, message.member_id) == (1, "m")


# KIP-848


class Modern(Coordinator):
    """Answers heartbeats by ``beats``: functions of the request; later ones change nothing."""

    def __init__(self) -> None:
        super().__init__(partitions=2)
        self.beats: list[Any] = []
        self.epoch = 0
        self.transport.answers["ConsumerGroupHeartbeat"] = self._beat

    def subscribed(self, **settings: Any) -> Consumer:
        given = {
            "group_id": "g", "group_protocol": "consumer", "auto_offset_reset": "earliest",
            "enable_auto_commit": False, **settings,
        }  # fmt: skip
        consumer = Consumer(given, transport=self.transport.for_client)
        consumer.subscribe("orders")
        return consumer

    def assign(self, *numbers: int, topic_id: str | None = None) -> Any:
        def beat(request: Any) -> ConsumerGroupHeartbeatResponse:
            self.epoch += 1
            found = topic_id or self.transport.topic_id("orders")
            rows = (TopicPartitions(topic_id=found, partitions=numbers),) if numbers else ()
            return ConsumerGroupHeartbeatResponse(
                member_epoch=self.epoch,
                heartbeat_interval_ms=1_000,
                assignment=Assignment(topic_partitions=rows),
            )

        return beat

    def error(self, code: ErrorCode) -> Any:
        return lambda request: ConsumerGroupHeartbeatResponse(error_code=code, error_message="because")

    def _beat(self, request: Any) -> ConsumerGroupHeartbeatResponse:
        if self.beats:
            return self.beats.pop(0)(request)  # type: ignore[no-any-return]
        return ConsumerGroupHeartbeatResponse(member_epoch=max(self.epoch, 0), heartbeat_interval_ms=1_000)

    def sent(self) -> list[Any]:
        return [each.message for each in self.transport.sent("ConsumerGroupHeartbeat")]


def test_a_heartbeat_has_only_what_is_new() -> None:
    broker = Modern()
    broker.beats = [broker.assign(0, 1)]
    with broker.subscribed(group_remote_assignor="range") as consumer:
        joined(consumer)
        broker.transport.reactor.settle(3_000)
        assert consumer.group_metadata().generation_id == 1
    first, second, third, *_, last = broker.sent()
    assert (first.member_epoch, first.topic_partitions, first.subscribed_topic_names) == (0, (), ("orders",))
    assert (first.server_assignor, first.rebalance_timeout_ms) == ("range", 300_000)
    assert second.member_epoch == 1  # confirms the assignment
    assert [each.partitions for each in second.topic_partitions] == [(0, 1)]
    assert (second.subscribed_topic_names, second.rebalance_timeout_ms) == (None, -1)
    assert (third.topic_partitions, third.subscribed_topic_names) == (None, None)
    assert last.member_epoch == -1


def test_a_partition_is_given_up_before_that_is_confirmed() -> None:
    broker = Modern()
    broker.beats = [broker.assign(0, 1)]
    with broker.subscribed() as consumer:
        joined(consumer)
        consumer.poll(0)
        broker.beats = [broker.assign(1)]
        broker.transport.reactor.settle(5_000)
        assert consumer.assignment() == BOTH  # until the next poll
        assert all(each.topic_partitions is None for each in broker.sent()[3:])
        for _ in range(5):
            consumer.poll(100)
        assert consumer.assignment() == {TopicPartition("orders", 1)}
        confirmed = [each.topic_partitions for each in broker.sent()[3:] if each.topic_partitions is not None]
        assert [each[0].partitions for each in confirmed] == [(1,)]


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_partitions_and_joins_again(error: ErrorCode) -> None:
    broker = Modern()
    broker.beats = [broker.assign(0, 1)]
    with broker.subscribed() as consumer:
        joined(consumer)
        consumer.poll(0)
        broker.beats = [broker.error(error), broker.assign(0)]
        broker.transport.reactor.settle(3_000)
        assert len(broker.beats) == 1  # joins with the next poll
        for _ in range(5):
            consumer.poll(100)
        assert consumer.assignment() == {TopicPartition("orders", 0)}
    epochs = [each.member_epoch for each in broker.sent()]
    assert epochs.count(0) == 2


@pytest.mark.parametrize("error", [ErrorCode.UNSUPPORTED_ASSIGNOR, ErrorCode.UNRELEASED_INSTANCE_ID])
def test_an_error_of_a_heartbeat_fails_poll(error: ErrorCode) -> None:
    broker = Modern()
    broker.beats = [broker.error(error), broker.assign(0, 1)]
    with broker.subscribed() as consumer:
        with pytest.raises(KafkaError, match="group 'g': because"):
            consumer.poll(1_000)
        joined(consumer)


@pytest.mark.parametrize("error", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_a_heartbeat_is_repeated_after_a_pause(error: ErrorCode) -> None:
    broker = Modern()
    broker.beats = [broker.error(error), broker.assign(0, 1)]
    with broker.subscribed() as consumer:
        joined(consumer)
    assert [each.member_epoch for each in broker.sent()[:2]] == [0, 0]


def test_a_stale_epoch_is_replaced_in_a_commit() -> None:
    broker = Modern()
    broker.beats = [broker.assign(0, 1)]
    broker.errors = [ErrorCode.STALE_MEMBER_EPOCH]
    with broker.subscribed() as consumer:
        joined(consumer)
        consumer.commit({PARTITION: 1})
    assert len(broker.transport.sent("OffsetCommit")) == 2


def test_a_static_member_leaves_for_a_time() -> None:
    broker = Modern()
    broker.beats = [broker.assign(0, 1)]
    with broker.subscribed(group_instance_id="i") as consumer:
        joined(consumer)
    assert (broker.sent()[-1].member_epoch, broker.sent()[-1].instance_id) == (-2, "i")
