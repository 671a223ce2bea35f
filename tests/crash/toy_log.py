"""A minimal log that syncs, rolls, trims and writes a checkpoint; faults can be planted in it.

An entry is stored as its length, its checksum and its bytes. The name of a segment is the number of its first
entry. The checkpoint has the number of the first entry of the log. An append is acknowledged when it is
durable.
"""

from __future__ import annotations

import zlib

from tests.crash.explore import Promises
from txnkafka.env import Clock, DataFile, DataFiles

__all__ = ["FAULTS_OF_TOY", "ToyLog", "check_toy", "toy_workload"]

FAULTS_OF_TOY = [
    "no sync of data",
    "no sync of the directory of a new segment",
    "no sync of the checkpoint",
    "checkpoint renamed before its sync",
    "segment removed before the checkpoint is durable",
    "torn end believed",
    "torn end not cut",
    "goes on after a failed sync",
]
ENTRIES_A_SEGMENT = 3
TOP = "/toy"
CHECKPOINT = f"{TOP}/checkpoint"


class ToyLog:
    """The log, opened and recovered. ``entries`` are those of the segments from the checkpoint on."""

    def __init__(self, files: DataFiles, fault: str = "") -> None:
        self._files = files
        self._fault = fault
        self._failed = False
        if not files.exists(TOP):
            files.make_directory(TOP)
            files.sync_directory("/")
        self.start = self._read_checkpoint()
        self.entries: list[bytes] = []
        self._segment: DataFile | None = None
        self._size = 0
        self._recover()

    def _read_checkpoint(self) -> int:
        content = self._files.read(CHECKPOINT, 100) if self._files.exists(CHECKPOINT) else b"0."
        assert content.endswith(b"."), f"the checkpoint is damaged: {content!r}"
        return int(content[:-1])

    def _recover(self) -> None:
        names = [each.name for each in self._files.list(TOP) if each.name.isdigit()]
        firsts = [int(each) for each in names if int(each) >= self.start]
        assert not firsts or firsts[0] == self.start, f"segment {self.start} is missing"
        for first in firsts:
            assert first == self.end, f"segment {self.end} is missing"
            path = f"{TOP}/{first:04}"
            content = self._files.read(path, 1 << 20)
            size = self._take(content)
            if size < len(content) and self._fault != "torn end not cut":
                self._cut(path, size)
            self._segment, self._size = self._files.open_to_write(path), len(self._files.read(path, 1 << 20))

    def _take(self, content: bytes) -> int:
        """Read the valid entries; return where they end."""
        at = 0
        while at + 8 <= len(content):
            size = int.from_bytes(content[at : at + 4])
            entry, crc = content[at + 8 : at + 8 + size], int.from_bytes(content[at + 4 : at + 8])
            if self._fault != "torn end believed" and (size == 0 or crc != zlib.crc32(entry)):
                break
            self.entries.append(entry)
            at += 8 + size
        return min(at, len(content))

    def _cut(self, path: str, size: int) -> None:
        file = self._files.open_to_write(path)
        file.truncate(size)
        file.sync()
        file.close()

    @property
    def end(self) -> int:
        return self.start + len(self.entries)

    def append(self, entry: bytes) -> None:
        """Append an entry; returns when it is durable."""
        if self._failed and self._fault != "goes on after a failed sync":
            raise OSError("the log is closed after an error")
        self._failed = True
        if self._segment is None or len(self.entries) % ENTRIES_A_SEGMENT == 0:
            self._roll()
        assert self._segment is not None
        header = len(entry).to_bytes(4) + zlib.crc32(entry).to_bytes(4)
        self._segment.write(self._size, [header, entry])
        self._size += 8 + len(entry)
        if self._fault != "no sync of data":
            self._segment.sync()
        self.entries.append(entry)
        self._failed = False

    def _roll(self) -> None:
        path = f"{TOP}/{self.end:04}"
        if not self._files.exists(path):
            self._files.create(path).close()
        self._segment, self._size = self._files.open_to_write(path), 0
        if self._fault != "no sync of the directory of a new segment":
            self._files.sync_directory(TOP)

    def trim(self) -> None:
        """Delete the first segment."""
        self.start += ENTRIES_A_SEGMENT
        del self.entries[:ENTRIES_A_SEGMENT]
        fresh = f"{CHECKPOINT}.tmp"
        if self._files.exists(fresh):
            self._files.remove(fresh)
        file = self._files.create(fresh)
        file.write(0, [b"%d." % self.start])
        if self._fault == "checkpoint renamed before its sync":
            self._files.rename(fresh, CHECKPOINT)
        if self._fault != "no sync of the checkpoint":
            file.sync()
        if self._fault != "checkpoint renamed before its sync":
            self._files.rename(fresh, CHECKPOINT)
        if self._fault != "segment removed before the checkpoint is durable":
            self._files.sync_directory(TOP)
        self._files.remove(f"{TOP}/{self.start - ENTRIES_A_SEGMENT:04}")
        self._files.sync_directory(TOP)


def toy_workload(files: DataFiles, clock: Clock, promises: Promises, fault: str = "") -> None:
    """Appends entries over several segments, and trims the first one in between."""
    log = ToyLog(files, fault)
    for number in range(8):
        entry = b"entry %d" % number * 90
        promises.attempt(entry)
        try:
            log.append(entry)
        except OSError:
            continue
        promises.acknowledge(entry)
        if number == 5:
            log.trim()


def check_toy(files: DataFiles, promises: Promises, fault: str = "") -> None:
    """Acknowledged entries are present in order unless they were trimmed, no entry is one that was never
    written, and the log accepts appends."""
    for again in (False, True):
        log = ToyLog(files, fault)
        assert not again or log.entries[-1] == b"one more", "an entry appended after recovery is missing"
        known = promises.attempted[: log.start] + log.entries
        assert set(log.entries) <= {*promises.attempted, b"one more"}, "an entry that was never written"
        assert known[: len(promises.acknowledged)] == promises.acknowledged, "an entry is missing"
        log.append(b"one more")
