"""``EpochWatch``: the leader epochs of a simulation's brokers, kept independently of the disk.

A consumer detects that a restarted broker has lost records only if each start has a later epoch (KIP-320). A
power cut does not change the consumer's memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker


class EpochWatch:
    """``complaints`` name partitions that a broker began to serve in a used epoch."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._latest: dict[tuple[str, int], int] = {}  # by topic id and partition number

    def started(self, broker: Broker) -> None:
        """Check the epochs of a started broker, before clients send requests."""
        for topic in broker.image.topics.values():
            for number, partition in topic.partitions.items():
                latest = self._latest.get((topic.topic_id, number), -1)
                if partition.leader_epoch <= latest:
                    self.complaints.append(
                        f"leader epoch: {topic.name}-{number} has {partition.leader_epoch} after a start, "
                        f"and had {latest} before"
                    )
                self._latest[topic.topic_id, number] = partition.leader_epoch
