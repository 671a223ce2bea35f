"""``GroupHost``: the broker as seen by a group coordinator, beside the log."""

from __future__ import annotations

from typing import Protocol

from txnkafka.coordinator.registry.cluster_image import ClusterImage


class GroupHost(Protocol):
    """The cluster, and unique names."""

    @property
    def image(self) -> ClusterImage:
        """The topics of the cluster."""

    @property
    def image_version(self) -> int:
        """The offset after the last record of the image."""

    def new_id(self) -> str:
        """Return a new unique text: the end of a member id."""
