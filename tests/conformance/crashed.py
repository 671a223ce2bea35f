"""Partitions of which a power cut has left something, as our recovery has left them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.conformance.author import Author
from txnkafka import TopicPartition
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import SystemClock
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

__all__ = ["Crashed", "crashed"]

STATES = 40
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
PATH = "/data"


class Crashed(NamedTuple):
    """What is left, and who wrote it."""

    files: MemoryFiles
    author: Author
    producers: list[ProducerStateEntry]

    def put(self, target: Path) -> None:
        """Let it be the log of a topic that was created with the same name."""
        for file in target.iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        source = f"{PATH}/{self.author.partition}"
        for entry in self.files.list(source):
            if entry.name != "partition.metadata":
                content = self.files.read(f"{source}/{entry.name}", entry.size)
                (target / entry.name).write_bytes(content)


def crashed(partition: TopicPartition, number: int, config: LogConfig) -> Crashed:
    """The ``number``-th of the states that are looked at, recovered and closed."""
    files, now_ms = MemoryFiles(SystemClock()), SystemClock().now_ms()
    directory = LogManager(DataDirectory(files, PATH, lambda _: config, now_ms=now_ms))
    author = Author(partition).to(directory.create(partition, TOPIC_ID, now_ms=now_ms))
    begin = len(files.journal)
    for turn in range(8):
        author.send(100)
        author.send(200 + turn % 2, transactional=True, codec="lz4")
        if turn % 3 == 1:
            author.end(200 + turn % 2, commit=turn % 2 == 0)
        if turn % 2:
            directory.flush()
    author.send(200, transactional=True)
    states = list(crash_states(files, limit=STATES, seed=number, begin=begin))
    left = MemoryFiles(SystemClock(), states[(number * 7 + 11) % len(states)].disk)
    again = LogManager(DataDirectory(left, PATH, lambda _: config, now_ms=now_ms))
    author.follow(again.logs[partition])
    producers = again.logs[partition].producers.entries()
    again.close()
    return Crashed(left, author, producers)
