"""``CollidingNames``: the topics by the names of their metrics, where ``.`` and ``_`` are one character.

Two topics whose metrics have one name cannot be told apart by who reads these. Source:
``ReplicationControlManager.topicsWithCollisionChars``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.coordinator.cluster_image import ClusterImage

__all__ = ["CollidingNames"]


class CollidingNames:
    """Finds topics that exist, or are in creation, with the metrics' name of a new one."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._names_at = -1  # changes of topics before them
        self._in_creation: dict[str, str] = {}  # which the image does not have yet

    def find(self, name: str, image: ClusterImage) -> str | None:
        """Return the topic with which a new one would collide."""
        if "." not in name and "_" not in name:
            return None
        if self._names_at != image.topic_changes:  # once for all topics of a request
            self._names_at = image.topic_changes
            self._names = {_of_metrics(each): each for each in image.topics}
        key = _of_metrics(name)
        return self._names.get(key) or self._in_creation.get(key)

    def begin(self, names: Iterable[str]) -> None:
        """The creation of the topics of a request has begun: those of later ones may collide with them. As
        in Kafka, topics of one request do not collide with each other."""
        self._in_creation.update((_of_metrics(name), name) for name in names)

    def end(self, name: str) -> None:
        """The creation of a topic has ended, with success or without."""
        key = _of_metrics(name)
        if self._in_creation.get(key) == name:
            del self._in_creation[key]


def _of_metrics(name: str) -> str:
    return name.replace(".", "_")
