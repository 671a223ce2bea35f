"""The ``.snapshot`` files of a partition: which there are, the newest that holds, when they go.

A snapshot is advice: the log below its offset gives the same state. It is written without waiting for the
disk; one that does not hold is removed and an older one, or none, is taken.

Source: ``ProducerStateManager``, ``SnapshotFile``.
"""

from __future__ import annotations

import contextlib
import logging
from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from txnkafka.storage.formats.layout import file_name, parse_segment_file
from txnkafka.storage.formats.limits import SNAPSHOT_LIMIT, read_derived
from txnkafka.storage.log.log_flush import sync_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.env import DataFiles

__all__ = ["ProducerSnapshots"]

LOG = logging.getLogger("txnkafka.storage")


class ProducerSnapshots:
    """Offsets of the snapshots below ``directory``, ascending."""

    def __init__(self, files: DataFiles, directory: str, offsets: Iterable[int] = ()) -> None:
        self._files = files
        self._directory = directory
        self.offsets = sorted(offsets)
        self.unsynced: set[int] = set()

    def path(self, offset: int) -> str:
        """Where the snapshot of an offset is, or would be."""
        return self._files.join(self._directory, file_name(offset, "snapshot"))

    def write(self, offset: int, content: bytes) -> None:
        """Keep the state below ``offset``; one that is there is replaced. Raises OSError and leaves none."""
        self.remove(offset)
        if self._files.exists(self.path(offset)):  # a write that failed could not remove it
            self._files.remove(self.path(offset))
        file = self._files.create(self.path(offset))
        try:
            file.write(0, [content])
        except OSError:
            with contextlib.suppress(OSError):
                self._files.remove(self.path(offset))
            raise
        finally:
            file.close()
        insort(self.offsets, offset)
        self.unsynced.add(offset)

    def sync(self) -> None:
        """What was written is durable; the names are not. Raises OSError."""
        for path in self.take_unsynced():
            sync_file(self._files, path)

    def take_unsynced(self) -> list[str]:
        """Paths of those that were written and not synced; the caller syncs them."""
        taken = sorted(self.unsynced & set(self.offsets))
        self.unsynced.clear()
        return [self.path(offset) for offset in taken]

    def newest(self, end_offset: int) -> int | None:
        """The newest at or below ``end_offset``."""
        below = bisect_left(self.offsets, end_offset + 1)
        return self.offsets[below - 1] if below else None

    def read(self, offset: int) -> bytes:
        """Content of one. Raises CorruptFileError when it is too large, and OSError."""
        return read_derived(self._files, self.path(offset), SNAPSHOT_LIMIT)

    def remove(self, offset: int) -> None:
        """Remove one; none there is fine."""
        if offset in self.offsets:
            self.offsets.remove(offset)
            self.unsynced.discard(offset)
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(self.path(offset))

    def remove_above(self, end_offset: int) -> None:
        """Remove those of offsets that the log has not."""
        for offset in [each for each in self.offsets if each > end_offset]:
            self.remove(offset)

    def remove_below(self, start_offset: int) -> None:
        """Remove those that say nothing of what the log still has."""
        for offset in [each for each in self.offsets if each < start_offset]:
            self.remove(offset)

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Remove those that belong to no segment, but the newest when it lies behind the last segment's
        base (``ProducerStateManager.removeStraySnapshots``)."""
        kept = set(base_offsets)
        if self.offsets and self.offsets[-1] > max(kept, default=-1):
            kept.add(self.offsets[-1])
        for offset in [each for each in self.offsets if each not in kept]:
            self.remove(offset)

    @classmethod
    def found(cls, files: DataFiles, directory: str, names: Iterable[str]) -> ProducerSnapshots:
        """Those among the names of a directory."""
        parsed = (parse_segment_file(name) for name in names)
        whole = [each for each in parsed if each and not each.suffix]
        return cls(files, directory, [each.base_offset for each in whole if each.kind == "snapshot"])
