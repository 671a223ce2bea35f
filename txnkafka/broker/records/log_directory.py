"""The data directory for administrators: its path, its free space, and the sizes of its logs.

Source: ``ReplicaManager.describeLogDirs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.env import Volume

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition


class _Look:
    """Work that queries the file system of a directory."""

    def __init__(self, files: DataFiles, path: str) -> None:
        self._files, self._path = files, path
        self.found = Volume(path)

    def run(self) -> None:
        """Query it. Raises OSError."""
        self.found = self._files.volume(self._path)

    def finish(self, error: Exception | None) -> None:
        """Do nothing."""


def find_volume(broker: Broker, reply: Callable[[Volume, Exception | None], None]) -> None:
    """Answer with the path of the data directory, and the size and free space of its file system."""
    look = _Look(broker.data.files, broker.data.path)
    broker.jobs.add(lambda: look, lambda error: reply(look.found, error))


def log_sizes(broker: Broker) -> dict[TopicPartition, int]:
    """Return the bytes of the segments of each served partition."""
    return {
        partition: sum(segment.size for segment in log.segments)
        for partition, log in broker.logs.items()
        if broker.serves(partition)
    }
