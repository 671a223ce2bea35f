"""``Fetcher``: requests the records of assigned partitions from their leaders.

Each broker has at most one Fetch under way. It gets the next one when the last response for each of its
partitions has begun to be decoded, so that at most two responses of each broker are in memory.

A Fetch names the leader epoch of the last record before its offset. A broker whose log differs there answers
where it diverges (KIP-595), which replaces the separate validation of positions by OffsetForLeaderEpoch
(KIP-320). Source: ``AbstractFetch``, ``FetchCollector``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.client.consumer.consumer_errors import LogTruncationError
from txnkafka.client.consumer.fetch_session import FetchSession
from txnkafka.client.consumer.fetched_data import FetchedData
from txnkafka.client.consumer.subscription import Place
from txnkafka.error_codes import ErrorCode, Family
from txnkafka.errors import KafkaError, OffsetOutOfRangeError, error_for
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.client.cluster import Cluster
    from txnkafka.client.consumer.consumer_config import ConsumerConfig
    from txnkafka.client.consumer.fetch_session import Key, SessionRequest
    from txnkafka.client.consumer.signal import Signal
    from txnkafka.client.consumer.subscription import AssignedPartition, Subscription
    from txnkafka.wire.messages.fetch import FetchResponse, PartitionData

LOG = logging.getLogger("txnkafka.client")
_FIRST_WITH_IDS: Final = 13
_LAST_WITH_NAMES: Final = 12
_MOST_BUFFERED: Final = 2  # responses of one partition
_WAITING: Final = {
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Fetcher:
    """``changed`` is notified when data or an error has arrived."""

    def __init__(
        self, cluster: Cluster, config: ConsumerConfig, subscription: Subscription, changed: Signal
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._subscription = subscription
        self._changed = changed
        self._sessions: dict[int, FetchSession] = {}
        self._under_way: set[int] = set()

    def send(self) -> None:
        """Send a Fetch to each broker that has none, when all data of its partitions are consumed: a Fetch
        that waits for records of one partition would delay those of another."""
        by_node: dict[int, list[AssignedPartition]] = {}
        busy = set(self._under_way)
        now_ms = self._cluster.reactor.now_ms()
        for state in self._subscription.assigned.values():
            if state.place is not None or not state.is_deliverable:
                continue
            node_id = self._cluster.leader_of(state.partition)
            if node_id is None:
                self._cluster.updated_ms = -1
            elif not _is_consumed(state):
                busy.add(node_id)
            elif state.retry_ms <= now_ms:
                by_node.setdefault(node_id, []).append(state)
        for node_id in by_node.keys() - busy:
            self._under_way.add(node_id)
            self._cluster.reactor.spawn(self._fetch(node_id, by_node[node_id]))

    async def _fetch(self, node_id: int, states: list[AssignedPartition]) -> None:
        session = self._sessions.setdefault(node_id, FetchSession())
        try:
            await self._fetch_from(node_id, session, states)
        except KafkaError as error:
            session.reset()
            self._pause(states, error)
            if not error.retriable:
                states[0].failure = error
        except Exception as error:  # an answer that no broker should send: the next poll fails
            states[0].failure = error
        finally:
            self._under_way.discard(node_id)
            self._changed.notify()

    async def _fetch_from(self, node_id: int, session: FetchSession, states: list[AssignedPartition]) -> None:
        connection = await self._cluster.connection(node_id)
        states = [each for each in states if self._is_still_wanted(each, node_id)]
        if not states:
            return
        version = connection.versions.pick("Fetch", at_least=4)
        if version >= _FIRST_WITH_IDS and not all(self._topic_id(each.partition) for each in states):
            version = connection.versions.pick("Fetch", at_most=_LAST_WITH_NAMES, at_least=4)
        has_ids = version >= _FIRST_WITH_IDS
        offsets = {each.partition: each.fetch_offset for each in states}
        wanted = {self._key(each.partition, has_ids=has_ids): self._wanted(each) for each in states}
        request = session.next(wanted, has_ids=has_ids)
        message = self._message(request, has_ids=has_ids)
        response = await self._cluster.request(connection, "Fetch", version, message)
        if not session.answered(ErrorCode.of(response.error_code), response.session_id):
            LOG.debug("node %d: Fetch: %s", node_id, ErrorCode.of(response.error_code).name)
            return
        for partition, data in self._partitions(response, has_ids=has_ids):
            state = self._subscription.assigned.get(partition)
            if state is not None and offsets.get(partition) == state.fetch_offset:
                self._take(state, data)

    # Requests

    def _is_still_wanted(self, state: AssignedPartition, node_id: int) -> bool:
        """Return whether a partition is as it was before the connection was made."""
        partition = state.partition
        is_assigned = self._subscription.assigned.get(partition) is state
        return is_assigned and state.place is None and self._cluster.leader_of(partition) == node_id

    def _topic_id(self, partition: TopicPartition) -> str | None:
        topic = self._cluster.topics.get(partition.topic)
        return None if topic is None or topic.topic_id == ZERO_UUID else topic.topic_id

    def _key(self, partition: TopicPartition, *, has_ids: bool) -> Key:
        name = self._topic_id(partition) or "" if has_ids else partition.topic
        return name, partition.partition

    def _wanted(self, state: AssignedPartition) -> FetchPartition:
        topic = self._cluster.topics[state.partition.topic]
        return FetchPartition(
            partition=state.partition.partition,
            current_leader_epoch=topic.partitions[state.partition.partition].leader_epoch,
            fetch_offset=state.fetch_offset,
            last_fetched_epoch=state.fetch_epoch,
            partition_max_bytes=self._config.max_partition_fetch_bytes,
        )

    def _message(self, request: SessionRequest, *, has_ids: bool) -> FetchRequest:
        config = self._config
        topics: dict[str, list[FetchPartition]] = {}
        for (topic, _), wanted in request.partitions.items():
            topics.setdefault(topic, []).append(wanted)
        forgotten: dict[str, list[int]] = {}
        for topic, number in request.forgotten:
            forgotten.setdefault(topic, []).append(number)
        name = "topic_id" if has_ids else "topic"
        return FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=config.isolation,
            session_id=request.session_id,
            session_epoch=request.epoch,
            topics=tuple(FetchTopic(**{name: key}, partitions=tuple(some)) for key, some in topics.items()),
            forgotten_topics_data=tuple(
                ForgottenTopic(**{name: key}, partitions=tuple(some)) for key, some in forgotten.items()
            ),
            rack_id=config.client_rack,
        )

    # Responses

    def _partitions(
        self, response: FetchResponse, *, has_ids: bool
    ) -> Iterable[tuple[TopicPartition, PartitionData]]:
        names: Mapping[str, str] = self._cluster.names
        for topic in response.responses:
            name = names.get(topic.topic_id) if has_ids else topic.topic
            if name is not None:
                for data in topic.partitions:
                    yield TopicPartition(name, data.partition_index), data

    def _take(self, state: AssignedPartition, data: PartitionData) -> None:
        error = ErrorCode.of(data.error_code)
        if error != ErrorCode.NONE:
            self._refuse(state, error)
            return
        if data.diverging_epoch.end_offset >= 0:
            self._truncated(state, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            return
        state.high_watermark, state.log_start_offset = data.high_watermark, data.log_start_offset
        is_committed = bool(self._config.isolation)
        state.last_stable_offset = data.last_stable_offset if is_committed else data.high_watermark
        if data.records:
            found = FetchedData(state.fetch_offset, state.fetch_epoch, data, is_committed=is_committed)
            state.buffered.append(found)
            state.fetch_offset, state.fetch_epoch = found.end_offset, found.end_epoch

    def _refuse(self, state: AssignedPartition, code: ErrorCode) -> None:
        """Handle the error of one partition."""
        partition = state.partition
        error = error_for(code, f"{partition}: {code.name}")
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.fetch_offset != state.position:
                self._pause([state], error)  # asked again after the records before it
            elif self._config.auto_offset_reset == "none":
                state.failure = OffsetOutOfRangeError(
                    f"{partition}: offset {state.position} is out of range and auto.offset.reset is none: "
                    "call seek, seek_to_beginning or seek_to_end"
                )
            else:
                LOG.info("%s: offset %d is out of range: reset", partition, state.position)
                state.look_up(Place.BY_POLICY)
        elif code in _WAITING or (code.retriable and code != ErrorCode.CORRUPT_MESSAGE):
            self._pause([state], error)
        else:
            state.failure = error

    def _truncated(self, state: AssignedPartition, epoch: int, end_offset: int) -> None:
        """Continue where the log of the leader differs from the records before the position."""
        position = state.position
        if end_offset >= position and state.fetch_offset > position:
            state.drop_buffered()
        elif end_offset >= position:
            state.seek(position, epoch)
        elif self._config.auto_offset_reset == "none":
            state.failure = LogTruncationError(state.partition, position, end_offset)
        else:
            LOG.warning("%s: the log was truncated below %d, to %d", state.partition, position, end_offset)
            state.seek(end_offset, epoch)

    def _pause(self, states: Iterable[AssignedPartition], error: KafkaError) -> None:
        """Fetch these partitions after a pause, with new metadata where the error asks for it."""
        retry_ms = self._cluster.reactor.now_ms() + self._config.retry_backoff_ms
        for state in states:
            state.retry_ms = retry_ms
        if error.code.family is Family.REFRESH:
            self._cluster.updated_ms = -1
        self._cluster.reactor.call_at(retry_ms, self._changed.notify)
        LOG.debug("Fetch failed: %s", error)


def _is_consumed(state: AssignedPartition) -> bool:
    """Return whether the last response for a partition has at least begun to be decoded."""
    return not state.buffered or (len(state.buffered) < _MOST_BUFFERED and state.buffered[0].is_begun)
