"""Records of partitions: first and last offsets, offsets by time, and deletion."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.client.admin.call import Call, Calls
from txnkafka.client.admin.names import by_partition, by_topic
from txnkafka.client.admin.refusals import refusal
from txnkafka.client.admin.route import LEADER
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from txnkafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from txnkafka.errors import KafkaError

_CONSUMER: Final = -1  # the replica id of a client


class OffsetSpec(enum.IntEnum):
    """An offset by its place in the log, for ``list_offsets``. A number from 0 on is a timestamp instead, in
    milliseconds: the first record that is not older."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the largest timestamp (KIP-734)."""
    EARLIEST_LOCAL = -4
    """The first record on the disk of the leader (KIP-405)."""
    LATEST_TIERED = -5
    """The last record in tiered storage (KIP-1005)."""
    EARLIEST_PENDING_UPLOAD = -6
    """The first record that is not in tiered storage yet (KIP-1023)."""


_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}  # first versions of ListOffsets


class ListedOffset(NamedTuple):
    """An offset with the timestamp of its record and its leader epoch; -1 where no record fits, and as
    timestamp of the first and last offset."""

    offset: int
    timestamp: int
    leader_epoch: int


class RecordCalls(Calls):
    """A part of ``AdminCore``."""

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, int],
        *,
        isolation_level: str | IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, ListedOffset]:
        """Return an offset for each partition: by an ``OffsetSpec``, or by a timestamp in milliseconds.

        LATEST is the last stable offset by default; with ``read_uncommitted``, which is the default of Java's
        client, the high watermark. Raises UnknownTopicOrPartitionError, UnsupportedVersionError."""
        wanted = by_partition(specs)
        level = int(IsolationLevel.of(isolation_level) is IsolationLevel.READ_COMMITTED)
        at_least = max([2 * level, *(_SINCE.get(each, 1) for each in wanted.values())])
        timeout_ms = self.config.request_timeout_ms

        def request(keys: Sequence[TopicPartition], version: int) -> ListOffsetsRequest:
            topics = tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        ListOffsetsPartition(
                            partition_index=number, timestamp=int(wanted[TopicPartition(topic, number)])
                        )
                        for number in numbers
                    ),
                )
                for topic, numbers in by_topic(keys).items()
            )
            return ListOffsetsRequest(
                replica_id=_CONSUMER, isolation_level=level, topics=topics, timeout_ms=timeout_ms
            )

        call = Call("ListOffsets", LEADER, "partition", request, _listed, at_least=at_least)
        return await self.results(call, wanted)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete the records of partitions below an offset, -1 for the high watermark; returns the new first
        offsets (KIP-107).

        Raises OffsetOutOfRangeError for an offset after the high watermark, PolicyViolationError for a topic
        that is only compacted, UnknownTopicOrPartitionError."""
        wanted = by_partition(before)
        timeout_ms = self.config.request_timeout_ms

        def request(keys: Sequence[TopicPartition], version: int) -> DeleteRecordsRequest:
            topics = tuple(
                DeleteRecordsTopic(
                    name=topic,
                    partitions=tuple(
                        DeleteRecordsPartition(
                            partition_index=number, offset=wanted[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ),
                )
                for topic, numbers in by_topic(keys).items()
            )
            return DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)

        return await self.results(Call("DeleteRecords", LEADER, "partition", request, _low), wanted)


def _listed(
    response: Any, keys: Sequence[TopicPartition]
) -> Iterator[tuple[TopicPartition, ListedOffset | KafkaError]]:
    for topic in response.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            found = ListedOffset(each.offset, each.timestamp, each.leader_epoch)
            yield key, refusal(each.error_code, str(key)) or found


def _low(response: Any, keys: Sequence[TopicPartition]) -> Iterator[tuple[TopicPartition, int | KafkaError]]:
    for topic in response.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            yield key, refusal(each.error_code, str(key)) or each.low_watermark
