"""``Services``: what every part of a broker uses. It knows no part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.durability import Durability
from txnkafka.broker.failures import Failures
from txnkafka.broker.jobs import Jobs
from txnkafka.broker.log_manager import LogManager
from txnkafka.broker.turns import Turns
from txnkafka.coordinator.ticks import Ticks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.config.broker_config import BrokerConfig
    from txnkafka.broker.config.configs import Configs
    from txnkafka.broker.durability import Mode
    from txnkafka.broker.registry.metadata_log import MetadataLog
    from txnkafka.coordinator.registry.cluster_image import ClusterImage, PartitionImage
    from txnkafka.model import TopicPartition
    from txnkafka.storage.data_directory import DataDirectory
    from txnkafka.storage.log.partition_log import PartitionLog

NOW: Final = -1


class Services:
    """The files, the registry, and the queues of one broker. ``now_ms`` is the time of the request or call
    that runs, ``ticks`` the time for deadlines. ``due`` is the tick at which a part has something to do."""

    def __init__(
        self, data: DataDirectory, metadata: MetadataLog, configs: Configs, *, now_ms: int, durability: Mode
    ) -> None:
        self.now_ms = now_ms
        self.ticks = Ticks(now_ms)
        self.due = NOW
        self.configs = configs
        self.data = data
        self.logs: Mapping[TopicPartition, PartitionLog] = data.logs
        self.manager = LogManager(data)
        self.metadata = metadata
        self.image: ClusterImage = metadata.image
        self.failures = Failures()
        self.jobs = Jobs(self.failures)
        self.durability = Durability(self.manager.flushes, self.failures, durability, registry=metadata.log)
        self.turns = Turns(self.failures, self.durability)

    @property
    def config(self) -> BrokerConfig:
        """The current settings; some change while the broker runs."""
        return self.configs.current

    @property
    def node_id(self) -> int:
        """The id of this node."""
        return self.metadata.node_id

    def registered(self, partition: TopicPartition) -> PartitionImage | None:
        """Return the registry's entry for a partition, or None."""
        topic = self.image.topics.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.partition)

    def serves(self, partition: TopicPartition) -> bool:
        """Return True if the registry has the partition."""
        return self.registered(partition) is not None

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the leader epoch of a registered partition."""
        return self.image.topics[partition.topic].partitions[partition.partition].leader_epoch

    def look_again(self) -> None:
        """Ask all parts for their deadlines: something may be due earlier than ``due``."""
        self.due = NOW
