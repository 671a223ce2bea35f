"""Reads the newest sound producer snapshot of a partition directory; damaged ones are skipped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.limits import SNAPSHOT_LIMIT

if TYPE_CHECKING:
    from txnkafka._core.producer_table import ProducerTable
    from txnkafka.env import FileSystem

_BEFORE_ALL_TIME = -(2**63)


class SnapshotFiles(NamedTuple):
    """The producer snapshots of a partition: ``paths`` by offset; snapshots outside ``offsets`` are
    ignored."""

    file_system: FileSystem
    paths: Mapping[int, str]
    offsets: range

    def load_newest(self, table: ProducerTable) -> int | None:
        """Load the newest sound snapshot into ``table``; return its offset, or None without one."""
        for offset, content in self._contents():
            with contextlib.suppress(CorruptFileError):
                # expire no producer
                table.load(content, now_ms=_BEFORE_ALL_TIME, expiration_ms=1, end_offset=offset)
                return offset
        return None

    def _contents(self) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, content) of the readable snapshots, the newest first."""
        for offset in sorted(self.paths, reverse=True):
            if offset in self.offsets:
                with contextlib.suppress(OSError, CorruptFileError):
                    content = self.file_system.read(self.paths[offset], SNAPSHOT_LIMIT)
                    yield offset, content
