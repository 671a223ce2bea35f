"""``PartitionMovements``: the movements of one assignment, so that no two partitions of a topic change
places.

Source: ``AbstractStickyAssignor.PartitionMovements``.
"""

from __future__ import annotations

from txnkafka.model import TopicPartition


class PartitionMovements:
    """Movements from a member to another, by partition and by topic."""

    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}

    def add(self, partition: TopicPartition, source: str, target: str) -> None:
        """Note that a partition moves; a second movement continues the first one, or cancels it."""
        before = self._by_partition.pop(partition, None)
        if before is not None:
            del self._by_topic[partition.topic, *before][partition]
            source = before[0]
        if source != target:
            self._by_partition[partition] = source, target
            self._by_topic.setdefault((partition.topic, source, target), {})[partition] = None

    def instead_of(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move: one of the same topic that has moved the other way goes back."""
        before = self._by_partition.get(partition)
        origin = source if before is None else before[0]
        reverse = self._by_topic.get((partition.topic, target, origin))
        return next(iter(reverse)) if reverse else partition
