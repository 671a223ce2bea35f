"""The hash of the topics that a consumer group is subscribed to; its change triggers a new assignment.

It is stored in the log, and an Apache Kafka that later coordinates the group compares it with its own.

Source: ``Utils.computeTopicHash`` and ``computeGroupHash`` of the group coordinator (KIP-1101).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterable
from functools import lru_cache

import xxhash

from txnkafka.coordinator.registry.cluster_image import TopicImage


def topics_hash(topics: Iterable[TopicImage]) -> int:
    """Return the hash of existing topics as a signed number; 0 for no topics."""
    found = sorted(topics, key=lambda topic: topic.name)
    if not found:
        return 0
    hashes = (_topic_hash(topic.topic_id, topic.name, len(topic.partitions)) for topic in found)
    return _signed(xxhash.xxh3_64_intdigest(b"".join(value.to_bytes(8, "little") for value in hashes)))


@lru_cache(maxsize=10_000)
def _topic_hash(topic_id: str, name: str, partitions: int) -> int:
    """Return the hash of one topic whose replicas have no rack. Numbers are little-endian; text is its
    UTF-16 units and their count."""
    uuid, text = urlsafe_b64decode(topic_id + "=="), name.encode("utf-16-le")
    return xxhash.xxh3_64_intdigest(
        b"\0" + uuid[7::-1] + uuid[:7:-1] + text + (len(text) // 2).to_bytes(4, "little")
        + partitions.to_bytes(4, "little")
        + b"".join(number.to_bytes(4, "little") for number in range(partitions))
    )  # fmt: skip


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
