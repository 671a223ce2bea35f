"""CreatePartitions: adds partitions to topics (KIP-195).

Versions 0 to 3. Each topic succeeds or fails by itself; a topic that is named twice fails, and is answered
once. With ``validate_only`` nothing is created.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from txnkafka.broker.topics.partition_creation import EnlargedTopic, MorePartitions, create_partitions
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("CreatePartitions")
def handle(broker: Broker, request: CreatePartitionsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the new partitions can be written to."""
    counts = Counter(topic.name for topic in request.topics)
    twice = [
        EnlargedTopic(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        for name, count in counts.items()
        if count > 1
    ]
    wanted = [_wanted(topic) for topic in request.topics if counts[topic.name] == 1]

    def answer(results: list[EnlargedTopic]) -> None:
        reply(CreatePartitionsResponse(results=tuple(_result(each) for each in [*twice, *results])))

    create_partitions(broker, wanted, answer, validate_only=request.validate_only)


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = topic.assignments
    replicas = None if assignments is None else [assignment.broker_ids for assignment in assignments]
    return MorePartitions(topic.name, topic.count, replicas)


def _result(result: EnlargedTopic) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=result.name, error_code=result.error, error_message=result.message
    )
