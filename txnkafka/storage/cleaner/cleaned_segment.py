"""The new segment of a compaction, until it replaces others.

Its files have the suffix ``.cleaned``, then ``.swap``, in the end none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.storage.log.log_segment import LogSegment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.config import LogConfig
    from txnkafka.env import Bytes, DataFiles


class CleanedSegment(LogSegment):
    """A LogSegment written as a whole."""

    def __init__(
        self, data_files: DataFiles, directory: str, base_offset: int, config: LogConfig, *, created_ms: int
    ) -> None:
        super().__init__(data_files, directory, base_offset, config, created_ms=created_ms, suffix=".cleaned")

    def extend(self, batches: Sequence[tuple[Bytes, int, int]]) -> None:
        """Append batches, each with its last offset and largest timestamp. Raises OSError, after which the
        segment is useless."""
        self.files.open_or_create("log").write(self.size, [batch for batch, _, _ in batches])
        for batch, last_offset, max_timestamp in batches:
            size = len(batch)
            self.note(self.size, size, last_offset, max_timestamp)
            self.size += size

    def make_durable(self, modified_ms: int) -> None:
        """Finish the segment: sync it, and set its modification time to ``modified_ms``. Raises OSError."""
        self.seal()
        self.files.open_or_create("log")
        self.save()
        self.modified_ms = modified_ms
        self.files.data_files.set_modified_ms(self.path("log"), modified_ms)
        self.sync()
