"""ConsumerGroupHeartbeat: a member joins, keeps or leaves a group of the consumer protocol (KIP-848).

Versions 0 and 1. From 1 on the client makes the member id, and may subscribe with a pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat, HeartbeatAnswer
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("ConsumerGroupHeartbeat")
def handle(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer when the state in the response is durable."""
    if not broker.groups.has_consumer_protocol:
        reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    broker.groups.consumer_heartbeat(
        ConsumerHeartbeat(
            request.group_id,
            request.member_id,
            request.member_epoch,
            request.instance_id,
            request.rack_id,
            request.rebalance_timeout_ms,
            request.subscribed_topic_names,
            request.subscribed_topic_regex,
            request.server_assignor,
            _owned(request.topic_partitions),
            peer.client_id or "",
            f"/{peer.client_host}",
            has_own_id=version >= 1,
        ),
        lambda answer: reply(_response(answer)),
    )


def _owned(topics: Sequence[TopicPartitions] | None) -> dict[str, list[int]] | None:
    if topics is None:
        return None
    owned: dict[str, list[int]] = {}
    for topic in topics:
        owned.setdefault(topic.topic_id, []).extend(topic.partitions)
    return owned


def _response(answer: HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if answer.assignment is not None:
        assignment = Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in answer.assignment.items()
            )
        )
    return ConsumerGroupHeartbeatResponse(
        error_code=answer.error,
        error_message=answer.message,
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.interval_ms,
        assignment=assignment,
    )
