"""Shows the progress of a command in one line of stderr, if that is a terminal.

A thread draws the line twice a second, so that it moves whatever the command is doing; a faster command shows
nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING

from txnkafka.cli.terminal import status_line
from txnkafka.env import running_seconds
from txnkafka.shown import printable, size

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.model import TopicPartition

INTERVAL_SECONDS = 0.5


class Progress:
    """The current work of a command: a phase, then partitions in sequence, each with its number, the total,
    and the bytes read so far."""

    def __init__(self, messages: Messages) -> None:
        self._is_shown = sys.stderr.isatty() and messages.verbosity >= 0
        self._phase = "opening the directory"
        self._number = self._total = 0
        self._read = self._size = 0
        self._begin = running_seconds()
        self._stop = Event()
        self._thread = Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Progress:
        if self._is_shown:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            self._stop.set()
            self._thread.join()
            with status_line.cleared():
                pass

    def phase(self, text: str) -> None:
        """Begin work that is not about one partition."""
        self._phase, self._number = text, 0

    def each(self, partitions: list[TopicPartition]) -> Iterator[TopicPartition]:
        """Yield the partitions; each stays the current one until the caller asks for the next."""
        self._total = len(partitions)
        for partition in partitions:
            self.partition(partition)
            yield partition

    def partitions(self, total: int) -> None:
        """Set the total number of partitions, for ``partition``."""
        self._total = total

    def partition(self, partition: TopicPartition, bytes_: int = 0) -> None:
        """Begin the next partition, with ``bytes_`` bytes to read (0: unknown)."""
        self._phase, self._read, self._size = str(partition), 0, bytes_
        self._number += 1

    def amount(self, phase: str, done: int, total: int) -> None:
        """Set the bytes done and the total over all partitions."""
        self._phase, self._number, self._read, self._size = phase, 0, done, total

    def read(self, bytes_: int) -> None:
        """Count bytes read from the current partition."""
        self._read += bytes_

    @property
    def text(self) -> str:
        """Return the progress line."""
        seconds = int(running_seconds() - self._begin)
        parts = [printable(self._phase)]
        if self._number:
            parts.insert(0, f"partition {self._number:,} of {self._total:,}")
        if self._size:
            parts.append(f"{size(self._read)} of {size(self._size)}")
        return f"{', '.join(parts)} ({seconds // 60}:{seconds % 60:02})"

    def _draw(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            status_line.show(self.text)
