"""Shows on a terminal that a command still works, and how far it is, in one line of stderr.

The line is drawn by a thread twice a second, so that it moves whatever the command does meanwhile; a command
that is quicker shows nothing.
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

__all__ = ["Progress"]

INTERVAL_SECONDS = 0.5


class Progress:
    """What a command does now: a phase, then partitions one after the other, with their number of all and the
    bytes that were read of this one."""

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
        """Begin with something that is no partition."""
        self._phase, self._number = text, 0

    def each(self, partitions: list[TopicPartition]) -> Iterator[TopicPartition]:
        """Yield the partitions; each is what the command does until it asks for the next one."""
        self._total = len(partitions)
        for partition in partitions:
            self.partition(partition)
            yield partition

    def partitions(self, total: int) -> None:
        """Set the number of all partitions, for ``partition``."""
        self._total = total

    def partition(self, partition: TopicPartition, bytes_: int = 0) -> None:
        """Begin with the next partition, of which that many bytes are to be read (0: unknown)."""
        self._phase, self._read, self._size = str(partition), 0, bytes_
        self._number += 1

    def amount(self, phase: str, done: int, total: int) -> None:
        """Set how many bytes of all are done, over all partitions."""
        self._phase, self._number, self._read, self._size = phase, 0, done, total

    def read(self, bytes_: int) -> None:
        """Count bytes read of this partition."""
        self._read += bytes_

    @property
    def text(self) -> str:
        """The line."""
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
