"""ElectLeaders: elects leaders of partitions (KIP-183, KIP-460). This node leads all partitions.

Versions 0 to 2. From 1 on the request has the election type: 0 preferred leader, 1 any replica. A request
without partitions means all; the response then leaves out partitions that need no election.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

ELECTION_TYPES: Final = (0, 1)


@serves("ElectLeaders")
def handle(broker: Broker, request: ElectLeadersRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    is_known = request.election_type in ELECTION_TYPES
    asked: dict[str, tuple[int, ...]] = dict.fromkeys(broker.image.topics, ())
    if request.topic_partitions is not None:
        asked = {
            topic_partition.topic: topic_partition.partitions for topic_partition in request.topic_partitions
        }
    results = tuple(
        ReplicaElectionResult(
            topic=topic,
            partition_result=tuple(_result(broker, topic, number, is_known=is_known) for number in numbers),
        )
        for topic, numbers in asked.items()
    )
    error = ErrorCode.NONE if is_known else ErrorCode.INVALID_REQUEST
    reply(ElectLeadersResponse(error_code=error, replica_election_results=results))


def _result(broker: Broker, topic: str, number: int, *, is_known: bool) -> PartitionResult:
    if not is_known:
        error, message = (
            ErrorCode.INVALID_REQUEST,
            "unknown election type: 0 is the preferred leader, 1 any replica",
        )
    elif broker.serves(TopicPartition(topic, number)):
        error, message = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    else:
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {topic}-{number} does not exist"
    return PartitionResult(partition_id=number, error_code=error, error_message=message)
