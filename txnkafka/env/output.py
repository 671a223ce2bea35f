"""Files that are written: an output directory of somebody who asked for one, never a log directory.

What must survive a power cut is synced, and so is the directory that names it: a name that was not synced
may be gone. Everything that changes the disk is one of the methods here, so that a test can stop between
any two of them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Protocol

from txnkafka.env.filesystem import FileSystem, LocalFileSystem

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["LocalOutput", "OutputFile", "OutputFiles", "unique_name", "write_durably"]


class OutputFile(Protocol):
    """A new file, open to write."""

    def write(self, content: Buffer) -> object:
        """Add bytes at the end; all of them."""
        ...

    def close(self) -> None:
        """End the file; nothing is synced by that."""
        ...


class OutputFiles(FileSystem, Protocol):
    """Where output is written."""

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, durably; one that is there is fine."""
        ...

    def create(self, path: str) -> OutputFile:
        """A new file; raises FileExistsError."""
        ...

    def sync(self, path: str) -> None:
        """Wait until the content of a file, or the names in a directory, are on the disk."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, in one step; a file that had it before is gone."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a file, or a directory and everything in it; nothing there is fine."""
        ...

    def lock(self, path: str) -> OutputFile | None:
        """Lock a file, which is made if need be, until what is returned is closed or the process ends; None
        when somebody else holds it."""
        ...


class LocalOutput(LocalFileSystem):
    """The machine's own files."""

    def make_directory(self, path: str) -> None:
        path = os.path.abspath(path)
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        self.make_directory(parent)
        os.makedirs(path, exist_ok=True)
        self.sync(parent)

    def create(self, path: str) -> OutputFile:
        return open(path, "xb")

    def sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove_tree(self, path: str) -> None:
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.remove(path)

    def lock(self, path: str) -> OutputFile | None:
        file = open(path, "ab")  # noqa: SIM115  (given to the caller)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file


def unique_name() -> str:
    """A name that nobody else has."""
    return uuid.uuid4().hex


def write_durably(files: OutputFiles, path: str, content: bytes) -> None:
    """A whole small file, which is there with all of its content or not at all. Raises OSError."""
    fresh = f"{path}.{unique_name()}"
    try:
        file = files.create(fresh)
        with closing(file):
            file.write(content)
        files.sync(fresh)
        files.rename(fresh, path)
    except OSError:
        files.remove_tree(fresh)
        raise
    files.sync(path.rpartition("/")[0] or ".")
