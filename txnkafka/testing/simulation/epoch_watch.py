"""``EpochWatch``: the leader epochs that the brokers of a simulation had, remembered apart from the disk.

A consumer that has read in one life of a broker notices records that the next life has lost only if every
epoch is later (KIP-320). A power cut does not change the memory of a consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker

__all__ = ["EpochWatch"]


class EpochWatch:
    """``complaints`` name partitions that a broker began to serve in an epoch that was there before."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._latest: dict[tuple[str, int], int] = {}  # by topic id and partition number

    def started(self, broker: Broker) -> None:
        """A broker has started, and clients may ask it from now on."""
        for topic in broker.image.topics.values():
            for number, partition in topic.partitions.items():
                latest = self._latest.get((topic.topic_id, number), -1)
                if partition.leader_epoch <= latest:
                    self.complaints.append(
                        f"leader epoch: {topic.name}-{number} has {partition.leader_epoch} after a start, "
                        f"and had {latest} before"
                    )
                self._latest[topic.topic_id, number] = partition.leader_epoch
