"""``GroupHost``: what a group coordinator needs of the broker around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from txnkafka.coordinator.cluster_image import ClusterImage
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerIdAndEpoch

__all__ = ["GroupHost"]


class GroupHost(Protocol):
    """None of these waits for the disk, and none makes a call before it has returned."""

    @property
    def image(self) -> ClusterImage:
        """The topics of the cluster."""

    @property
    def image_version(self) -> int:
        """The offset behind the last record of the image."""

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        call: Callable[[ErrorCode], None],
        producer: ProducerIdAndEpoch | None = None,
    ) -> int:
        """Append one batch to a partition of ``__consumer_offsets``, in a transaction if there is a
        ``producer``; returns its first offset. ``call`` gets NONE when it is durable, or why it never will
        be. Raises KafkaError when nothing was appended."""

    def max_batch_bytes(self, partition: int) -> int:
        """The largest batch that the log of a partition of ``__consumer_offsets`` takes: ask for each batch,
        because it may change at any time."""

    def when_durable(self, partition: int, call: Callable[[ErrorCode], None]) -> None:
        """Call when everything appended to the partition so far is durable, or never will be."""

    def new_id(self) -> str:
        """A new unique text: the end of a member id."""
