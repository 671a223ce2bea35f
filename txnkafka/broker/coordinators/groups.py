"""``Groups``: the group coordinator of a broker, and the broker as its host.

Source: ``GroupCoordinatorService``, ``KafkaApis``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.config.group_settings import group_config
from txnkafka.broker.coordinators.coordinator_topic import CoordinatorTopic
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, log_events
from txnkafka.coordinator.group.described_groups import DescribedConsumerGroup as DescribedConsumerGroup
from txnkafka.coordinator.group.described_groups import DescribedConsumerMember as DescribedConsumerMember
from txnkafka.coordinator.group.group_coordinator import GroupCoordinator
from txnkafka.coordinator.group.group_requests import (
    CommittedOffset as CommittedOffset,
)
from txnkafka.coordinator.group.group_requests import (
    ConsumerHeartbeat as ConsumerHeartbeat,
)
from txnkafka.coordinator.group.group_requests import (
    DescribedGroup as DescribedGroup,
)
from txnkafka.coordinator.group.group_requests import (
    HeartbeatAnswer as HeartbeatAnswer,
)
from txnkafka.coordinator.group.group_requests import (
    Identity as Identity,
)
from txnkafka.coordinator.group.group_requests import (
    Joined as Joined,
)
from txnkafka.coordinator.group.group_requests import (
    JoinGroup as JoinGroup,
)
from txnkafka.coordinator.group.group_requests import (
    Left,
    Offsets,
)
from txnkafka.coordinator.group.group_requests import (
    ListedGroup as ListedGroup,
)
from txnkafka.coordinator.group.group_requests import (
    OffsetToCommit as OffsetToCommit,
)
from txnkafka.coordinator.group.group_requests import (
    Protocol as Protocol,
)
from txnkafka.coordinator.group.group_requests import (
    Synced as Synced,
)
from txnkafka.coordinator.group.group_requests import (
    SyncGroup as SyncGroup,
)
from txnkafka.env import unique_name
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.storage.log.log_records import parts_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.log_event import LogEvent
    from txnkafka.coordinator.registry.cluster_image import ClusterImage
    from txnkafka.storage.log.partition_log import PartitionLog


class Groups:
    """``coordinator`` has the groups of the node."""

    def __init__(self, services: Services, create_internal: Callable[[str], None]) -> None:
        self._services = services
        self._topic = CoordinatorTopic(services, CONSUMER_OFFSETS_TOPIC, create_internal, has_answers=True)
        config = services.config
        self.coordinator = GroupCoordinator(
            self,
            self._topic,
            config=group_config(config),
            partition_count=config.offsets_topic_num_partitions,
            ticks=services.ticks,
        )
        self._load(services.now_ms)
        removed = services.image.removed_topic_ids
        if removed and not services.data.was_clean:  # a crash may have lost the tombstones of their offsets
            self.coordinator.delete_removed(removed, services.image.topics, services.now_ms)

    def configure(self) -> None:
        """Use changed settings of the broker."""
        self.coordinator.configure(group_config(self._services.config))

    def _load(self, now_ms: int) -> None:
        """Load the partitions of ``__consumer_offsets`` that are not loaded."""

        def load(number: int, log: PartitionLog) -> None:
            self.coordinator.load(number, _events(log), now_ms)

        self._topic.load(self.coordinator.partitions, load)

    def on_created(self) -> None:
        """Load new partitions of ``__consumer_offsets``, also if their directories could not be created."""
        self._load(self._services.now_ms)

    def on_deleted(self, topic: str, numbers: Collection[int]) -> None:
        """Forget the partitions of a topic that the registry has removed."""
        if topic == CONSUMER_OFFSETS_TOPIC:
            for number in numbers:
                self.coordinator.resign(number)
        else:
            self.coordinator.delete_partitions(topic, numbers, self._services.now_ms)

    def stop(self) -> None:
        """Stop coordinating groups. Waiting requests get NOT_COORDINATOR, and members find the next owner."""
        for number in list(self.coordinator.partitions.loaded):
            self.coordinator.resign(number)

    def on_marker(self, partition: TopicPartition, offset: int, producer_id: int, committed: bool) -> None:
        """Apply an end marker that was appended to a partition."""
        if partition.topic == CONSUMER_OFFSETS_TOPIC:
            self.coordinator.end_transaction(partition.partition, offset, producer_id, committed)

    # Requests

    @property
    def has_consumer_protocol(self) -> bool:
        """Return whether ``group.version`` allows groups of the consumer protocol."""
        return self._services.image.features.get("group.version", 0) > 0

    def find(self, group_id: str) -> ErrorCode:
        """Return NONE if this node coordinates the group; see ``CoordinatorTopic.find``."""
        return self._topic.find(self.coordinator.partitions, group_id)

    def join(self, request: JoinGroup, reply: Callable[[Joined], None]) -> None:
        """Add a member to a group, or let a member rejoin."""
        self.coordinator.join(request, self._services.failures.owned(reply), self._services.now_ms)

    def consumer_heartbeat(
        self, request: ConsumerHeartbeat, reply: Callable[[HeartbeatAnswer], None]
    ) -> None:
        """Handle a heartbeat of a consumer group: a member joins, is alive, or leaves."""
        self.coordinator.consumer_heartbeat(
            request, self._services.failures.owned(reply), self._services.now_ms
        )

    def sync(self, request: SyncGroup, reply: Callable[[Synced], None]) -> None:
        """Answer with the assignment of a member."""
        self.coordinator.sync(request, self._services.failures.owned(reply), self._services.now_ms)

    def heartbeat(self, identity: Identity) -> ErrorCode:
        """Record that a member is alive."""
        return self.coordinator.heartbeat(identity, self._services.now_ms)

    def leave(self, group_id: str, leaving: Sequence[Identity], reply: Left) -> None:
        """Remove members from a group; ``reply`` gets the errors of the request and of each member."""
        self.coordinator.leave(group_id, leaving, self._services.failures.owned(reply), self._services.now_ms)

    def commit(
        self,
        identity: Identity,
        offsets: Offsets,
        reply: Callable[[dict[TopicPartition, ErrorCode]], None],
        *,
        version: int,
    ) -> None:
        """Commit offsets; ``version`` is OffsetCommit's."""
        self.coordinator.commit(identity, offsets, reply, self._services.now_ms, version=version)

    def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        reply: Callable[[ErrorCode, dict[TopicPartition, CommittedOffset]], None],
        *,
        require_stable: bool,
        member: tuple[str | None, int] = (None, -1),
    ) -> None:
        """Answer with the committed offsets of partitions, None for all. ``member`` has the id and epoch of
        the requesting member."""
        self.coordinator.fetch(group_id, partitions, reply, require_stable=require_stable, member=member)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        reply: Callable[[ErrorCode, dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Delete committed offsets."""
        self.coordinator.delete_offsets(group_id, partitions, reply)

    def delete(self, group_id: str, reply: Callable[[ErrorCode], None]) -> None:
        """Delete a group without members."""
        self.coordinator.delete(group_id, reply)

    def describe(self, group_id: str) -> DescribedGroup:
        """Return the description of a group for DescribeGroups."""
        return self.coordinator.describe(group_id)

    def describe_consumer(
        self, group_ids: Sequence[str], reply: Callable[[list[DescribedConsumerGroup]], None]
    ) -> None:
        """Answer with the descriptions of groups for ConsumerGroupDescribe."""
        self.coordinator.describe_consumer(group_ids, reply)

    def listed(self) -> list[ListedGroup]:
        """Return all groups."""
        return self.coordinator.listed()

    def advance(self, now_ms: int) -> int:
        """Run everything due; return the ticks of the next call at the latest."""
        return self.coordinator.advance(now_ms)

    # GroupHost

    @property
    def image(self) -> ClusterImage:
        """The replay of the metadata log."""
        return self._services.image

    @property
    def image_version(self) -> int:
        """The end of the metadata log."""
        return self._services.metadata.log.log_end_offset

    def new_id(self) -> str:
        """Return a new unique text."""
        return unique_name()


def _events(log: PartitionLog) -> Iterator[LogEvent]:
    for headers, records in parts_of_log(log):
        yield from log_events(headers, records)
