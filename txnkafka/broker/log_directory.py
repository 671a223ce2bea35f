"""The data directory as administrators see it: where it is, how much room there is, the sizes of its logs.

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

__all__ = ["find_volume", "log_sizes"]


class _Look:
    """Work that asks the file system of a directory."""

    def __init__(self, files: DataFiles, path: str) -> None:
        self._files, self._path = files, path
        self.found = Volume(path)

    def run(self) -> None:
        """Ask. Raises OSError."""
        self.found = self._files.volume(self._path)

    def finish(self, error: Exception | None) -> None:
        """Nothing depends on it."""


def find_volume(broker: Broker, reply: Callable[[Volume, Exception | None], None]) -> None:
    """Answer where the data directory is, and how much room its file system has."""
    look = _Look(broker.data.files, broker.data.path)
    broker.jobs.add(lambda: look, lambda error: reply(look.found, error))


def log_sizes(broker: Broker) -> dict[TopicPartition, int]:
    """Bytes of the segments of each partition that is served."""
    return {
        partition: sum(segment.size for segment in log.segments)
        for partition, log in broker.logs.items()
        if broker.serves(partition)
    }
