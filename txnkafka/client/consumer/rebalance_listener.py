"""``RebalanceListener``: called by ``poll`` when the assignment changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from txnkafka.model import TopicPartition


class RebalanceListener:
    """Override what you need (Java: ``ConsumerRebalanceListener``). ``poll``, ``unsubscribe`` and ``close``
    make the calls, in the thread of their caller. An exception of a listener is raised there, after the
    rebalance has gone on."""

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit or store the results of these partitions: another member may get them after this call. They
        are never empty."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Prepare for these new partitions, which may be empty; ``seek`` is possible."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Clean up: another member may have these partitions already, so commits for them fail. By default
        the same as ``on_partitions_revoked``."""
        self.on_partitions_revoked(partitions)
