"""Files whose N-th call fails, by a plan; and a count of all calls, for deriving plans."""

from __future__ import annotations

import errno
import io
import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.env import DataFile, DataFiles, DirectoryEntry, Lock, MappedBytes, ReadableFile, Volume
from txnkafka.testing.memory_files import MemoryFile

if TYPE_CHECKING:
    from txnkafka.env import Bytes

TEXTS = {
    errno.EIO: "input/output error",
    errno.ENOSPC: "no space left on device",
    errno.EINTR: "interrupted system call",
    errno.EMFILE: "too many open files",
}


class CallSite(NamedTuple):
    """A call by its name and the kind of file: its suffix, or the name of a file without suffix."""

    call: str
    suffix: str


@dataclass(slots=True)
class FaultPlan:
    """Call number ``fails`` (from 1 on; 0: none) raises the OSError ``error``; with ``for_ever``, all later
    calls also fail.

    Only calls named ``call`` are numbered, or all calls. With ``short`` a failing write writes the first half
    of its bytes. ``calls`` counts all calls, ``counted`` is the number of the last call, ``failed`` lists the
    failed ones."""

    fails: int = 0
    error: int = errno.EIO
    call: str | None = None
    for_ever: bool = False
    short: bool = False
    calls: Counter[CallSite] = field(default_factory=Counter)
    failed: list[CallSite] = field(default_factory=list)
    counted: int = 0

    def check(self, call: str, path: str) -> None:
        """Count a call. Raises OSError if the plan makes this call fail."""
        name = posixpath.basename(path)
        site = CallSite(call, posixpath.splitext(name)[1] or name)
        self.calls[site] += 1
        if self.call is not None and self.call != call:
            return
        self.counted += 1
        if self.fails and (self.counted == self.fails or (self.for_ever and self.counted > self.fails)):
            self.failed.append(site)
            raise OSError(self.error, f"{TEXTS.get(self.error, 'error')} (planned)", path)


class FaultyFiles:
    """Wraps other files; calls that the plan makes fail do not reach them."""

    def __init__(self, files: DataFiles, plan: FaultPlan) -> None:
        self.window_bytes = files.window_bytes
        self.maps_files = files.maps_files
        self.plan = plan
        self._files = files

    def load(self, path: str, names: Iterable[str]) -> None:
        self._files.load(path, names)

    def list(self, path: str) -> list[DirectoryEntry]:
        self.plan.check("list", path)
        return self._files.list(path)

    def is_directory(self, path: str) -> bool:
        return self._files.is_directory(path)

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def open(self, path: str) -> FaultyReadableFile:
        self.plan.check("open", path)
        return FaultyReadableFile(self._files.open(path), self.plan, path)

    def read(self, path: str, limit: int) -> bytes:
        self.plan.check("read", path)
        return self._files.read(path, limit)

    def is_locked(self, path: str) -> bool:
        return self._files.is_locked(path)

    def join(self, path: str, *names: str) -> str:
        return self._files.join(path, *names)

    def split(self, path: str) -> tuple[str, str]:
        return self._files.split(path)

    def create(self, path: str) -> FaultyFile:
        self.plan.check("create", path)
        return FaultyFile(self._files.create(path), self.plan, path)

    def open_to_write(self, path: str) -> FaultyFile:
        self.plan.check("open_to_write", path)
        return FaultyFile(self._files.open_to_write(path), self.plan, path)

    def rename(self, source: str, target: str) -> None:
        self.plan.check("rename", target)
        self._files.rename(source, target)

    def remove(self, path: str) -> None:
        self.plan.check("remove", path)
        self._files.remove(path)

    def make_directory(self, path: str) -> None:
        self.plan.check("make_directory", path)
        self._files.make_directory(path)

    def sync_directory(self, path: str) -> None:
        self.plan.check("sync_directory", path)
        self._files.sync_directory(path)

    def sync_file_system(self, path: str) -> bool:
        self.plan.check("sync_file_system", path)
        return self._files.sync_file_system(path)

    def lock(self, path: str) -> Lock | None:
        self.plan.check("lock", path)
        return self._files.lock(path)

    def is_locked_here(self, path: str) -> bool:
        return self._files.is_locked_here(path)

    def locking_process(self, path: str) -> int | None:
        return self._files.locking_process(path)

    def set_modified_ms(self, path: str, ms: int) -> None:
        self.plan.check("set_modified_ms", path)
        self._files.set_modified_ms(path, ms)

    def volume(self, path: str) -> Volume:
        self.plan.check("volume", path)
        return self._files.volume(path)


class FaultyReadableFile:
    """A file opened by FaultyFiles for reading."""

    def __init__(self, file: ReadableFile, plan: FaultPlan, path: str) -> None:
        self._file = file
        self._plan = plan
        self._path = path

    def size(self) -> int:
        return self._file.size()

    def read_into(self, buffer: memoryview, position: int) -> int:
        self._plan.check("read_into", self._path)
        return self._file.read_into(buffer, position)

    def read_ahead(self, position: int, length: int) -> None:
        self._file.read_ahead(position, length)

    def map(self, size: int) -> MappedBytes | None:
        self._plan.check("map", self._path)
        return self._file.map(size)

    def close(self) -> None:
        self._file.close()


class FaultyFile(FaultyReadableFile):
    """A file opened by FaultyFiles for writing."""

    def __init__(self, file: DataFile, plan: FaultPlan, path: str) -> None:
        super().__init__(file, plan, path)
        self._data_file = file

    def fileno(self) -> int:
        if self._plan.fails:  # a host that has the descriptor would sync without this plan
            raise io.UnsupportedOperation("a file with planned faults has no descriptor")
        return self._data_file.fileno()

    def write(self, position: int, parts: Sequence[Bytes]) -> None:
        try:
            self._plan.check("write", self._path)
        except OSError:
            if self._plan.short:
                written = b"".join(parts)
                self._data_file.write(position, [written[: len(written) // 2]])
            raise
        self._data_file.write(position, parts)

    def truncate(self, size: int) -> None:
        self._plan.check("truncate", self._path)
        self._data_file.truncate(size)

    def sync(self) -> None:
        try:
            self._plan.check("sync", self._path)
        except OSError:
            self.fail_sync()
            raise
        self._data_file.sync()

    def fail_sync(self) -> None:
        """Report a failed sync to files in memory."""
        if isinstance(self._data_file, (MemoryFile, FaultyFile)):
            self._data_file.fail_sync()
