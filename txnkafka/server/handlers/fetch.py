"""Fetch: record batches, as they are in the log.

Versions 4 to 18. Isolation level and aborted transactions from 4 on; 5 and below get NOT_LEADER_OR_FOLLOWER
for KAFKA_STORAGE_ERROR, which they do not know; sessions from 7 on (KIP-227); leader epochs from 9 on
(KIP-320); topics with ids from 13 on. Compressed with zstd by the topic's own setting, records need 10.

A read_uncommitted answer has no list of aborted transactions, a read_committed one has one, maybe empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.requests import FetchedPartition, FetchPartition
from txnkafka.broker.requests import FetchRequest as Wanted
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.isolation_levels import isolation_level
from txnkafka.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Cancel, Context, Reply

__all__ = ["handle"]


def handle(
    broker: Broker, request: FetchRequest, version: int, context: Context, reply: Reply
) -> Cancel:
    """Answer at once, or when there is enough. Returns how to withdraw the request."""
    names = broker.image.topic_names
    known, unknown = [], []
    for topic in request.topics:
        name = names.get(topic.topic_id) if version >= 13 else topic.topic
        for each in topic.partitions:
            if name is None:
                unknown.append((topic.topic_id, each.partition))
            else:
                partition = TopicPartition(name, each.partition)
                known.append(
                    FetchPartition(
                        partition, each.fetch_offset, each.partition_max_bytes, each.current_leader_epoch
                    )
                )
    wanted = Wanted(
        known,
        isolation_level(request.isolation_level),
        request.min_bytes,
        request.max_bytes,
        0 if unknown else request.max_wait_ms,
    )
    topic_ids = {topic.name: topic.topic_id for topic in broker.image.topics.values()} if version >= 13 else {}

    def answer(found: Sequence[tuple[TopicPartition, FetchedPartition]]) -> None:
        reply(_response(found, topic_ids, version))

    return broker.fetch(wanted, answer, now_ms=context.now_ms)


def _response(
    found: Sequence[tuple[TopicPartition, FetchedPartition]], topic_ids: dict[str, str], version: int
) -> FetchResponse:
    by_topic: dict[str, list[PartitionData]] = {}
    for partition, fetched in found:
        by_topic.setdefault(partition.topic, []).append(_data(partition.partition, fetched, version))
    return FetchResponse(
        responses=tuple(
            FetchableTopicResponse(
                topic=topic, topic_id=topic_ids.get(topic, "A" * 22), partitions=tuple(partitions)
            )
            for topic, partitions in by_topic.items()
        )
    )


def _data(index: int, fetched: FetchedPartition, version: int) -> PartitionData:
    records: memoryview | bytes = b""
    if fetched.records is not None:
        with fetched.records:
            records = fetched.records.read()
    error = fetched.error
    if error == ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    aborted = fetched.aborted_transactions
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else tuple(
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in aborted
        ),
        records=records,
    )
