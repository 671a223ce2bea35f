"""``ClusterImage``: topics, configs, features and producer ids of a cluster of one node, from its metadata
log.

Only ``replay`` changes it, both for records that became durable and for loaded ones. Records between
BeginTransaction and EndTransaction take effect when the transaction ends (KIP-868); records of a transaction
that is aborted, or open at the end of the log, do not.

Source: ``TopicDelta``, ``TopicsDelta``, ``FeaturesDelta``, ``ConfigurationsDelta``, ``ProducerIdsDelta``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from txnkafka.coordinator.registry.kept_records import KeptRecords
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.wire.records import LogRecord

# ConfigResource.Type
TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 16, 32
_NO_CHANGE = -2  # leader of a PartitionChange that keeps the leader
_LISTS = ("removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr")


@dataclass(slots=True)
class PartitionImage:
    """One partition. ``leader`` is -1 while its broker is stopped. This broker does not use
    ``directories`` and the fields after it, but writes them to snapshots."""

    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: list[str]
    leader_recovery_state: int = 0
    removing_replicas: Sequence[int] = ()
    adding_replicas: Sequence[int] = ()
    eligible_leader_replicas: Sequence[int] = ()
    last_known_elr: Sequence[int] = ()


@dataclass(slots=True)
class TopicImage:
    """One topic, with its partitions by number."""

    name: str
    topic_id: str
    partitions: dict[int, PartitionImage] = field(default_factory=dict)


class ClusterImage:
    """The image: ``topics`` by name, ``features`` with their levels, ``configs`` by resource type and name.

    ``topic_changes`` counts changes of topics and partitions, ``topic_creations`` new topics, so that readers
    notice a change without a comparison. ``next_producer_id`` is the first unused one. ``broker_epochs`` has
    the epochs of the last registrations. ``kept`` has the other records of existing objects."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topic_names: dict[str, str] = {}  # by topic id
        self.removed_topic_ids: dict[str, str] = {}  # with their names, until ``forget_removed``
        self._keeps_removed = True
        self.topic_changes = self.topic_creations = 0
        self.features: dict[str, int] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.next_producer_id = 0
        self.broker_epochs: dict[int, int] = {}
        self.kept = KeptRecords()
        self._pending: list[LogRecord] | None = None  # records of an open transaction

    def topic_configs(self, topic: str) -> dict[str, str]:
        """Return the configs that were set for a topic."""
        return self.configs.get((TOPIC_RESOURCE, topic), {})

    def replay(self, record: LogRecord) -> None:
        """Apply the next record. Raises KafkaError for an unknown record, because a state without it would
        differ from Kafka's."""
        if record.error is not None or record.value is None:
            raise KafkaError(f"the metadata log has a record that cannot be decoded: {record.error}")
        if record.type == "begin_transaction_record":
            self._pending = []
        elif record.type == "end_transaction_record":
            pending, self._pending = self._pending or [], None
            for each in pending:
                self._apply(each, each.value or {})
        elif record.type == "abort_transaction_record":
            self._pending = None
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self._apply(record, record.value)

    @property
    def has_open_transaction(self) -> bool:
        """Return whether the log ends inside a transaction, which the next controller aborts."""
        return self._pending is not None

    def _apply(self, record: LogRecord, value: dict[str, Any]) -> None:
        change = _CHANGES.get(record.type)
        if change is not None:
            change(self, value)
        self.kept.replay(record)

    def _topic(self, value: dict[str, Any]) -> None:
        topic = TopicImage(value["name"], value["topic_id"])
        self.topics[topic.name] = topic
        self.topic_names[topic.topic_id] = topic.name
        self.topic_changes += 1
        self.topic_creations += 1

    def _remove_topic(self, value: dict[str, Any]) -> None:
        name = self.topic_names.pop(value["topic_id"], None)
        self.topic_changes += 1
        if name is not None:
            del self.topics[name]
            self.configs.pop((TOPIC_RESOURCE, name), None)
            if self._keeps_removed:
                self.removed_topic_ids[value["topic_id"]] = name

    def forget_removed(self) -> None:
        """Forget removed topics, once the start has used them; from now on none is remembered, so that
        they cannot pile up while the broker runs."""
        self.removed_topic_ids.clear()
        self._keeps_removed = False

    def _of_topic(self, value: dict[str, Any]) -> TopicImage:
        name = self.topic_names.get(value["topic_id"])
        if name is None:
            raise KafkaError(f"the metadata log has a partition of the unknown topic id {value['topic_id']}")
        return self.topics[name]

    def _partition(self, value: dict[str, Any]) -> None:
        self.topic_changes += 1
        self._of_topic(value).partitions[value["partition_id"]] = PartitionImage(
            replicas=list(value["replicas"]),
            isr=list(value["isr"]),
            leader=value["leader"],
            leader_epoch=value["leader_epoch"],
            partition_epoch=value["partition_epoch"],
            directories=list(value.get("directories") or ()),
            leader_recovery_state=value["leader_recovery_state"],
            **{name: value[name] for name in _LISTS if value.get(name)},
        )

    def _change_partition(self, value: dict[str, Any]) -> None:
        partition = self._of_topic(value).partitions.get(value["partition_id"])
        if partition is None:
            raise KafkaError(f"the metadata log changes the unknown partition {value['partition_id']}")
        if value.get("isr") is not None:
            partition.isr = list(value["isr"])
        if value.get("replicas") is not None:
            partition.replicas = list(value["replicas"])
        if value.get("directories") is not None:
            partition.directories = list(value["directories"])
        if value.get("leader_recovery_state", -1) != -1:
            partition.leader_recovery_state = value["leader_recovery_state"]
        for name in _LISTS:
            if value.get(name) is not None:
                setattr(partition, name, value[name])
        if value.get("leader", _NO_CHANGE) != _NO_CHANGE:
            partition.leader = value["leader"]
            partition.leader_epoch += 1
        partition.partition_epoch += 1

    def _clear_elr(self, value: dict[str, Any]) -> None:
        name = value["topic_name"]
        for topic in self.topics.values():
            for partition in topic.partitions.values() if name in ("", topic.name) else ():
                partition.eligible_leader_replicas = partition.last_known_elr = ()

    def _config(self, value: dict[str, Any]) -> None:
        resource = value["resource_type"], value["resource_name"]
        configs = self.configs.setdefault(resource, {})
        if value["value"] is None:
            configs.pop(value["name"], None)
        else:
            configs[value["name"]] = value["value"]
        if not configs:
            del self.configs[resource]

    def _feature(self, value: dict[str, Any]) -> None:
        if value["feature_level"]:
            self.features[value["name"]] = value["feature_level"]
        else:
            self.features.pop(value["name"], None)

    def _producer_ids(self, value: dict[str, Any]) -> None:
        self.next_producer_id = value["next_producer_id"]

    def _register(self, value: dict[str, Any]) -> None:
        self.broker_epochs[value["broker_id"]] = value["broker_epoch"]


_CHANGES = {
    "topic_record": ClusterImage._topic,
    "remove_topic_record": ClusterImage._remove_topic,
    "partition_record": ClusterImage._partition,
    "partition_change_record": ClusterImage._change_partition,
    "clear_elr_record": ClusterImage._clear_elr,
    "config_record": ClusterImage._config,
    "feature_level_record": ClusterImage._feature,
    "producer_ids_record": ClusterImage._producer_ids,
    "register_broker_record": ClusterImage._register,
}
