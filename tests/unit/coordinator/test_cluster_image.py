"""The state that records of the metadata log describe, and the records that describe the state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from txnkafka.coordinator.registry import metadata_records
from txnkafka.coordinator.registry.cluster_image import TOPIC_RESOURCE, ClusterImage
from txnkafka.coordinator.registry.image_records import image_records
from txnkafka.coordinator.registry.metadata_records import LogRecord

FIRST, SECOND = "AAAAAAAAAAEAAAAAAAAAAg", "AAAAAAAAAAMAAAAAAAAABA"
UNCHANGED: dict[str, Any] = {
    "isr": None, "leader": -2, "replicas": None, "removing_replicas": None, "adding_replicas": None,
    "leader_recovery_state": -1, "directories": None, "eligible_leader_replicas": None,
    "last_known_elr": None,
}  # fmt: skip


def image_of(*records: LogRecord) -> ClusterImage:
    image = ClusterImage()
    for record in records:
        image.replay(record)
    return image


def change(**fields: Any) -> LogRecord:
    """A change of partition 0 of the first topic."""
    values = {"partition_id": 0, "topic_id": FIRST, **UNCHANGED, **fields}
    return LogRecord("partition_change_record", 5, None, 2, values)


def test_a_new_topic_has_no_settings_of_a_deleted_topic_with_its_name() -> None:
    image = image_of(
        metadata_records.topic("t", FIRST),
        metadata_records.config(TOPIC_RESOURCE, "t", "cleanup.policy", "compact"),
        metadata_records.config(TOPIC_RESOURCE, "t", "retention.ms", "1"),
        metadata_records.remove_topic(FIRST),
        metadata_records.topic("t", SECOND),
        metadata_records.config(TOPIC_RESOURCE, "t", "retention.ms", "2"),
    )
    assert image.topic_configs("t") == {"retention.ms": "2"}


def test_every_change_of_a_partition_increments_its_partition_epoch() -> None:
    """A change of the leader increments the leader epoch as well. A snapshot, which Apache Kafka loads, has
    both epochs."""
    partition = metadata_records.partition(FIRST, 0, 1, SECOND)
    image = image_of(metadata_records.topic("t", FIRST), partition)
    found = image.topics["t"].partitions[0]
    started = replace(found, leader_epoch=7, partition_epoch=3)
    for record, epochs in (
        (change(leader=-1), (1, 1)),
        (change(isr=[1]), (1, 2)),
        (metadata_records.partition_image(FIRST, 0, started), (7, 3)),
    ):
        image.replay(record)
        found = image.topics["t"].partitions[0]
        assert (found.leader_epoch, found.partition_epoch) == epochs
    (written,) = (each.value for each in image_records(image) if each.type == "partition_record")
    assert written is not None
    assert (written["leader_epoch"], written["partition_epoch"]) == (7, 3)
