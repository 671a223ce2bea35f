"""Arguments and results of the calls of ``Admin`` about topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class NewTopic(NamedTuple):
    """A topic to create. -1 partitions or replicas: as the broker is configured (KIP-464). ``assignments``
    has the brokers of each partition, instead of both numbers. ``config`` has Kafka's names."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] | None = None
    config: Mapping[str, object] | None = None


class CreatedTopic(NamedTuple):
    """A topic as the broker has created it, with all its settings."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str | None]


class TopicListing(NamedTuple):
    """A topic in the list of all topics."""

    name: str
    topic_id: str
    is_internal: bool


class PartitionDescription(NamedTuple):
    """A partition. Brokers are node ids; ``leader`` is None while it has none."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class TopicDescription(NamedTuple):
    """A topic with its partitions, by number."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
