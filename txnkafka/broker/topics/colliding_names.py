"""``CollidingNames``: topics by the name of their metrics, in which ``.`` and ``_`` are the same character.

The metrics of two topics with the same metric name cannot be distinguished.

Source: ``ReplicationControlManager.topicsWithCollisionChars``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.coordinator.registry.cluster_image import ClusterImage


class CollidingNames:
    """Finds the topic, existing or in creation, whose metric name equals that of a new topic."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._names_at = -1  # the image's ``topic_changes`` for ``_names``
        self._in_creation: dict[str, str] = {}  # topics that the image does not have yet

    def find(self, name: str, image: ClusterImage) -> str | None:
        """Return the topic that a new topic would collide with, or None."""
        if "." not in name and "_" not in name:
            return None
        if self._names_at != image.topic_changes:  # once for all topics of a request
            self._names_at = image.topic_changes
            self._names = {_of_metrics(topic): topic for topic in image.topics}
        key = _of_metrics(name)
        return self._names.get(key) or self._in_creation.get(key)

    def begin(self, names: Iterable[str]) -> None:
        """Note that the creation of a request's topics has begun, so that topics of later requests can
        collide with them. As in Kafka, topics of one request do not collide with each other."""
        self._in_creation.update((_of_metrics(name), name) for name in names)

    def end(self, name: str) -> None:
        """Note that the creation of a topic has ended, successfully or not."""
        key = _of_metrics(name)
        if self._in_creation.get(key) == name:
            del self._in_creation[key]


def _of_metrics(name: str) -> str:
    return name.replace(".", "_")
