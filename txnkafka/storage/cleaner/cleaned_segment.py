"""A segment beside the log: what compaction writes, until it takes the place of others.

Its files have a suffix, ``.cleaned``, then ``.swap``, in the end none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.segment_files import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.config import LogConfig
    from txnkafka.env import Bytes, DataFiles
    from txnkafka.storage.formats.layout import FileKind, FileSuffix

__all__ = ["CleanedSegment"]


class CleanedSegment(LogSegment):
    """A LogSegment whose files are called otherwise."""

    def __init__(
        self, files: DataFiles, directory: str, base_offset: int, config: LogConfig, *, created_ms: int
    ) -> None:
        super().__init__(files, directory, base_offset, config, created_ms=created_ms)
        self.suffix: FileSuffix = ".cleaned"

    def path(self, kind: FileKind) -> str:
        """Where a file of the segment is now."""
        return super().path(kind) + self.suffix

    def extend(self, batches: Sequence[tuple[Bytes, int, int]]) -> None:
        """Write batches, each with its last offset and largest timestamp, behind the last one. Raises
        OSError, after which the segment is of no use."""
        self.file_to_save("log").write(self.size, [batch for batch, _, _ in batches])
        for batch, last_offset, max_timestamp in batches:
            size = len(batch)
            self.note(self.size, size, last_offset, max_timestamp)
            self.size += size

    def make_durable(self, modified_ms: int) -> None:
        """Everything is written: sync it, as if it had been written last at ``modified_ms``. Raises
        OSError."""
        self.seal()
        self.file_to_save("log")
        self.save()
        self.modified_ms = modified_ms
        self.files.set_modified_ms(self.path("log"), modified_ms)
        self.sync()

    def become(self, suffix: FileSuffix) -> None:
        """Give the files another suffix, the log last: with it, the segment counts. Raises OSError."""
        for kind in reversed(KINDS):
            path = self.path(kind)
            if self.files.exists(path):
                self.files.rename(path, path.removesuffix(self.suffix) + suffix)
        self.suffix = suffix
