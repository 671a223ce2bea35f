"""Manages the ``.snapshot`` files of a partition: writes, finds, syncs and removes them.

A snapshot is derived data: the log below its offset gives the same state. It is written without waiting for
the disk; a damaged snapshot is removed, and an older one, or none, is used instead.

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

LOG = logging.getLogger("txnkafka.storage")


class ProducerSnapshots:
    """The snapshots in ``directory``, by their ascending ``offsets``."""

    def __init__(self, files: DataFiles, directory: str, offsets: Iterable[int] = ()) -> None:
        self._files = files
        self._directory = directory
        self.offsets = sorted(offsets)
        self.unsynced: set[int] = set()

    def path(self, offset: int) -> str:
        """Return the path of the snapshot at an offset; it need not exist."""
        return self._files.join(self._directory, file_name(offset, "snapshot"))

    def write(self, offset: int, content: bytes) -> None:
        """Write the snapshot at ``offset``, replacing an existing one. Raises OSError; then none exists."""
        self.remove(offset)
        if self._files.exists(self.path(offset)):  # left by a failed write
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
        """Sync the contents of all written snapshots, not their names. Raises OSError."""
        for path in self.take_unsynced():
            sync_file(self._files, path)

    def take_unsynced(self, offset: int | None = None) -> list[str]:
        """Return the paths of unsynced snapshots, or only of the snapshot at ``offset``; the caller syncs
        them."""
        if not self.unsynced:
            return []
        wanted = set(self.offsets) if offset is None else {offset}
        taken = sorted(self.unsynced & wanted)
        self.unsynced.difference_update(taken if offset is not None else set(self.unsynced))
        return [self.path(unsynced) for unsynced in taken]

    def newest(self, end_offset: int) -> int | None:
        """Return the offset of the newest snapshot at or below ``end_offset``, or None."""
        below = bisect_left(self.offsets, end_offset + 1)
        return self.offsets[below - 1] if below else None

    def read(self, offset: int) -> bytes:
        """Return the content of a snapshot. Raises CorruptFileError if it is too large, and OSError."""
        return read_derived(self._files, self.path(offset), SNAPSHOT_LIMIT)

    def remove(self, offset: int) -> None:
        """Remove the snapshot at ``offset``, if it exists. Raises OSError."""
        for path in self.forget([offset]):
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(path)

    def forget(self, offsets: Iterable[int]) -> list[str]:
        """Stop using the snapshots at these offsets; return the paths of the existing ones. The caller
        removes the files."""
        forgotten = [offset for offset in offsets if offset in self.offsets]
        for offset in forgotten:
            self.offsets.remove(offset)
        self.unsynced.difference_update(forgotten)
        return [self.path(offset) for offset in forgotten]

    def remove_above(self, end_offset: int) -> None:
        """Remove snapshots above the log end."""
        for offset in [known for known in self.offsets if known > end_offset]:
            self.remove(offset)

    def remove_below(self, start_offset: int) -> None:
        """Remove snapshots below the log start."""
        for offset in [known for known in self.offsets if known < start_offset]:
            self.remove(offset)

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Remove snapshots that belong to no segment, except the newest one if it is above the last segment's
        base offset (``ProducerStateManager.removeStraySnapshots``)."""
        kept = set(base_offsets)
        if self.offsets and self.offsets[-1] > max(kept, default=-1):
            kept.add(self.offsets[-1])
        for offset in [known for known in self.offsets if known not in kept]:
            self.remove(offset)

    @classmethod
    def found(cls, files: DataFiles, directory: str, names: Iterable[str]) -> ProducerSnapshots:
        """Find the snapshots among the file names of a directory."""
        parsed = (parse_segment_file(name) for name in names)
        whole = [file for file in parsed if file and not file.suffix]
        return cls(files, directory, [file.base_offset for file in whole if file.kind == "snapshot"])
