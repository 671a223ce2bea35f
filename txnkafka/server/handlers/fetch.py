"""Fetch: record batches, byte for byte as in the log.

Versions 4 to 18. 5 and earlier get NOT_LEADER_OR_FOLLOWER for KAFKA_STORAGE_ERROR, which they do not know.
Sessions from 7 on (KIP-227), leader epochs from 9 on (KIP-320), zstd topics from 10 on, topic ids instead of
names from 13 on, leader and epoch with FENCED_LEADER_EPOCH from 16 on (KIP-951).

A read_committed response has a list of aborted transactions, maybe empty; a read_uncommitted response has
none. An error is answered at once; Kafka may wait for records of other partitions first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.broker.requests import FetchedPartition, FetchPartition
from txnkafka.broker.requests import FetchRequest as Fetch
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.server.isolation_levels import isolation_level
from txnkafka.wire.fields import replaced
from txnkafka.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.server.fetch_sessions import Key, Wanted
    from txnkafka.server.peer import Cancel, Node, Peer, Reply

_NOT_LOOKED_AT: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
)  # fmt: skip
_FIRST_WITH_LEADERS: Final = 16
LOG = logging.getLogger("txnkafka.server")


@serves("Fetch", has_isolation_level=True)
def handle(broker: Broker, request: FetchRequest, version: int, peer: Peer, reply: Reply) -> Cancel | None:
    """Answer at once, or when ``min_bytes`` are available. Returns a function that withdraws the request."""
    wanted = peer.node.fetch_sessions.begin(request, version, broker.now_ms)
    if isinstance(wanted, ErrorCode):
        reply(FetchResponse(error_code=wanted))
        return None
    answer = _Answer(broker, version, wanted, peer.node, reply)
    fetch = Fetch(
        answer.partitions,
        isolation_level(request.isolation_level),
        request.min_bytes,
        request.max_bytes,
        0 if answer.refused else request.max_wait_ms,
        peer.node.room,
    )
    return broker.fetch(fetch, answer.give)


class _Answer:
    """One request: the partitions to read from the broker, and the partitions refused by the handler."""

    __slots__ = ("_broker", "_keys", "_node", "_reply", "_version", "_wanted", "partitions", "refused")

    def __init__(self, broker: Broker, version: int, wanted: Wanted, node: Node, reply: Reply) -> None:
        self._broker = broker
        self._node = node
        self._version = version
        self._wanted = wanted
        self._reply = reply
        self._keys: list[Key] = []
        self.partitions: list[FetchPartition] = []
        self.refused: list[tuple[Key, PartitionData]] = []
        names = broker.image.topic_names
        for key, each in wanted.partitions.items():
            name = names.get(key[0]) if version >= 13 else key[0]
            error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else _error(broker, name, version)
            if name is None or error != ErrorCode.NONE:
                self.refused.append((key, _data(each.partition, FetchedPartition(error), version)))
            else:
                partition = TopicPartition(name, each.partition)
                self._keys.append(key)
                self.partitions.append(
                    FetchPartition(
                        partition, each.fetch_offset, each.partition_max_bytes, each.current_leader_epoch,
                        each.last_fetched_epoch,
                    )
                )  # fmt: skip

    def give(self, found: Sequence[tuple[TopicPartition, FetchedPartition]]) -> None:
        """Read the records, and send the response."""
        version, data = self._version, []
        endpoints: tuple[NodeEndpoint, ...] = ()
        for key, (partition, fetched) in zip(self._keys, found, strict=True):
            answer = _data(partition.partition, fetched, version)
            if fetched.error == ErrorCode.FENCED_LEADER_EPOCH and version >= _FIRST_WITH_LEADERS:
                answer = replaced(answer, current_leader=self._leader(partition))
                endpoints = (self._endpoint(),)
            data.append((key, answer))
        data += self.refused
        by_topic: dict[str, list[PartitionData]] = {}
        for (topic, _), each in self._wanted.answer(data):
            by_topic.setdefault(topic, []).append(each)
        topics = [_topic(topic, partitions, version) for topic, partitions in by_topic.items()]
        self._reply(
            FetchResponse(
                session_id=self._wanted.session_id, responses=tuple(topics), node_endpoints=endpoints
            )
        )

    def _leader(self, partition: TopicPartition) -> LeaderIdAndEpoch:
        epoch = self._broker.leader_epoch(partition)
        return LeaderIdAndEpoch(leader_id=self._broker.node_id, leader_epoch=epoch)

    def _endpoint(self) -> NodeEndpoint:
        return NodeEndpoint(node_id=self._broker.node_id, host=self._node.host, port=self._node.port)


def _topic(topic: str, partitions: list[PartitionData], version: int) -> FetchableTopicResponse:
    if version >= 13:
        return FetchableTopicResponse(topic_id=topic, topic="", partitions=tuple(partitions))
    return FetchableTopicResponse(topic_id=ZERO_UUID, topic=topic, partitions=tuple(partitions))


def _error(broker: Broker, topic: str, version: int) -> ErrorCode:
    """Return the error of a topic that this version cannot fetch, or NONE."""
    if version < 10 and broker.image.topic_configs(topic).get("compression.type") == "zstd":
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.NONE


def _data(index: int, fetched: FetchedPartition, version: int) -> PartitionData:
    records: memoryview | bytes = b""
    if fetched.records is not None:
        with fetched.records:
            try:
                records = fetched.records.read()
            except OSError as failed:
                LOG.error("partition %d of a Fetch response cannot be read: %s", index, failed)
                fetched = FetchedPartition(ErrorCode.KAFKA_STORAGE_ERROR)
    error = fetched.error
    if error == ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    aborted, shown = fetched.aborted_transactions, None
    if aborted is not None:
        shown = tuple(
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in aborted
        )
    elif error in _NOT_LOOKED_AT:
        shown = ()  # as in Kafka
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
        aborted_transactions=shown,
        records=records,
        diverging_epoch=_NOT_DIVERGING if fetched.diverging is None else _epoch(*fetched.diverging),
    )


def _epoch(epoch: int, end_offset: int) -> EpochEndOffset:
    return EpochEndOffset(epoch=epoch, end_offset=end_offset)


_NOT_DIVERGING: Final = EpochEndOffset()
