"""``WritableMarker``: an end marker in a WriteTxnMarkers request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.model import TopicPartition

__all__ = ["WritableMarker"]


class WritableMarker(NamedTuple):
    """A marker to write; ``transaction_version`` decides how its epoch is checked."""

    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: Sequence[TopicPartition]
    coordinator_epoch: int
    transaction_version: int = 0
