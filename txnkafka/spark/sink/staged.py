"""The message of a task to the driver: where its staged batches are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from txnkafka.errors import LogDirError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txnkafka.spark.sink.decision import BatchId


class StagedBatch(NamedTuple):
    """A finished record batch of ``records`` in the bytes from ``position`` on."""

    topic: str
    partition: int
    position: int
    size: int
    records: int


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The batches of one task, in the order of its rows; ``path`` is None without any. ``batch_id`` is None
    if the task did not know it."""

    path: str | None
    batches: Sequence[StagedBatch]
    max_timestamp: int
    batch_id: BatchId | None = None

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(batch.records for batch in self.batches)


def staged_of(messages: Iterable[WriterCommitMessage | None]) -> list[Staged]:
    """Return the messages of tasks that have finished. Raises LogDirError for another message."""
    found = []
    for message in messages:
        if isinstance(message, Staged):
            found.append(message)
        elif message is not None:
            raise LogDirError(f"{message!r:.100} is not a message of this sink")
    return found
