"""Compares the partitions of the registry with the existing directories. Pure.

Source: ``LogManager.isStrayReplica``, ``ReplicaManager.applyDelta``, ``PartitionMetadataFile``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from txnkafka.handover.report import Owner, error, warning
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from txnkafka.coordinator.registry.cluster_image import ClusterImage
    from txnkafka.logdir import Finding

TopicIds = Mapping[TopicPartition, str | None]


def check_partitions(image: ClusterImage, found: TopicIds, to: Owner, path: str) -> Iterator[Finding]:
    """Yield the differences between the registry and the topic ids ``found`` in the partition directories
    (None: no ``partition.metadata``) of the data directory at ``path``."""
    known = _known(image)
    if found and not image.features and not image.topics:
        yield error(
            "bad-metadata-log", f"{path}/__cluster_metadata-0",
            f"it is empty, so none of the {len(found)} partitions would be served",
            "restore it from a backup; without it, 'txnkafka serve' makes topics of the partitions",
        )  # fmt: skip
        return
    for partition, topic_id in sorted(found.items()):
        where = f"{path}/{partition}"
        if partition not in known:
            if topic_id not in image.removed_topic_ids:
                yield _unknown(where, to)
        elif topic_id is not None and topic_id != known[partition]:
            yield error(
                "another-topic", where,
                f"topic id {topic_id} in partition.metadata, {known[partition]} in the metadata log: it is "
                "another topic of the same name",
                "move the directory away, or restore the one that belongs to the metadata log",
            )  # fmt: skip
    for partition in sorted(known.keys() - found.keys()):
        yield warning(
            "partition-without-directory", f"{path}/{partition}",
            "the partition is in the metadata log, but has no directory: it begins empty, at offset 0",
            "restore its directory if it was written to",
        )  # fmt: skip


def _unknown(where: str, to: Owner) -> Finding:
    text = "the partition is not in the metadata log"
    if to is Owner.KAFKA:
        remedy = "move the directory away if the topic is not needed, else restore the metadata log"
        return error("stray-partition", where, f"{text}: Apache Kafka renames it to …-stray", remedy)
    return warning(
        "stray-partition", where, f"{text}, and is not served", "restore the metadata log if it should be"
    )


def missing_topic_ids(image: ClusterImage, found: TopicIds) -> dict[TopicPartition, str]:
    """Return the topic ids of the directories without ``partition.metadata``: Apache Kafka would move such
    directories aside and begin empty partitions."""
    known = _known(image)
    return {
        each: known[each] for each, topic_id in sorted(found.items()) if topic_id is None and each in known
    }


def _known(image: ClusterImage) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic.name, number): topic.topic_id
        for topic in image.topics.values()
        for number in topic.partitions
    }
