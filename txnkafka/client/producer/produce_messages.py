"""Produce of a producer: the request for batches, and the answers for their partitions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRecordError, KafkaError, error_for
from txnkafka.model import NO_OFFSET, NO_TIMESTAMP, TopicPartition
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.client.cluster import Cluster
    from txnkafka.client.producer.producer_batch import ProducerBatch
    from txnkafka.client.transport import Versions

_LAST_V1: Final = 11  # from 12 on, a batch adds its partition to the transaction (KIP-890)
_FIRST_V2: Final = 12
_LAST_NAMES: Final = 12  # from 13 on, topics have ids
_FIRST: Final = 3  # with transactional ids


class Answer(NamedTuple):
    """The answer for one partition."""

    code: ErrorCode
    base_offset: int = NO_OFFSET
    log_append_time: int = NO_TIMESTAMP
    log_start_offset: int = NO_OFFSET
    message: str | None = None
    record_errors: tuple[Any, ...] = ()


def produce_request(
    cluster: Cluster, versions: Versions, batches: Iterable[tuple[ProducerBatch, bytearray]], *,
    transactional_id: str | None, acks: int, timeout_ms: int, is_v1: bool,
) -> tuple[int, ProduceRequest]:  # fmt: skip
    """Return version and message for batches, one of each partition. ``is_v1``: the partitions were added to
    the transaction. Raises UnsupportedVersionError."""
    by_topic: dict[str, list[PartitionProduceData]] = defaultdict(list)
    for batch, wire in batches:
        topic, number = batch.partition
        by_topic[topic].append(PartitionProduceData(index=number, records=memoryview(wire)))
    ids = {
        topic: cluster.topics[topic].topic_id if topic in cluster.topics else ZERO_UUID for topic in by_topic
    }
    most = _LAST_V1 if is_v1 else _LAST_NAMES if ZERO_UUID in ids.values() else 1 << 15
    least = _FIRST_V2 if transactional_id is not None and not is_v1 else _FIRST
    version = versions.pick("Produce", most, least)
    data = tuple(
        TopicProduceData(topic_id=ids[topic], name=topic, partition_data=tuple(rows))
        for topic, rows in by_topic.items()
    )
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=data
    )
    return version, request


def answers_of(response: Any, names: Mapping[str, str]) -> dict[TopicPartition, Answer]:
    """Return the answers by partition; ``names`` of topics by id."""
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), row.index): Answer(
            ErrorCode.of(row.error_code), row.base_offset, row.log_append_time_ms, row.log_start_offset,
            row.error_message, row.record_errors,
        )
        for topic in response.responses
        for row in topic.partition_responses
    }  # fmt: skip


def record_errors_of(answer: Answer, error: KafkaError) -> dict[int, KafkaError]:
    """Return the errors of refused records by their number in the batch (KIP-467)."""
    rows = answer.record_errors
    if len(rows) == 1:
        (row,) = rows
        return {row.batch_index: error_for(answer.code, row.batch_index_error_message or str(error))}
    return {row.batch_index: InvalidRecordError(row.batch_index_error_message or str(error)) for row in rows}
