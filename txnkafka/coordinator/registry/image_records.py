"""The records of a snapshot of the metadata log, which rebuild a cluster image, in Kafka's order.

Source: ``MetadataImage.write``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.coordinator.registry import metadata_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.coordinator.registry.cluster_image import ClusterImage
    from txnkafka.wire.records import LogRecord

_METADATA_VERSION: Final = "metadata.version"


def image_records(image: ClusterImage) -> Iterator[LogRecord]:
    """Yield the records that turn an empty image into ``image``."""
    levels = sorted(image.features.items(), key=lambda item: (item[0] != _METADATA_VERSION, item[0]))
    for name, level in levels:
        yield metadata_records.feature_level(name, level)
    yield from image.kept.of("register_broker_record")
    yield from image.kept.of("register_controller_record")
    for topic in image.topics.values():
        yield metadata_records.topic(topic.name, topic.topic_id)
        for number, partition in sorted(topic.partitions.items()):
            yield metadata_records.partition_image(topic.topic_id, number, partition)
    for (resource_type, resource_name), configs in image.configs.items():
        for name, value in configs.items():
            yield metadata_records.config(resource_type, resource_name, name, value)
    yield from image.kept.of("client_quota_record")
    if image.next_producer_id:
        yield metadata_records.producer_ids(-1, -1, image.next_producer_id)
    yield from image.kept.of("access_control_entry_record")
    yield from image.kept.of("user_scram_credential_record")
    yield from image.kept.of("delegation_token_record")
