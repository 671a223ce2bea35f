"""Locks a data directory for its owner: no other process changes it until the owner releases it, and the
owner changes nothing afterwards, because the directory may then have another owner.

Source: ``LogManager.lockLogDirs``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final

from txnkafka.env import make_directories, this_process
from txnkafka.errors import KafkaStorageError, LogDirError
from txnkafka.storage.formats.kafka_files import foreign_names
from txnkafka.storage.formats.layout import LOCK_FILE, META_PROPERTIES

if TYPE_CHECKING:
    from txnkafka.env import DataFiles, FileSystem, Lock

MOST_NAMED: Final = 3


class Ownership:
    """The right of this process to change the directory at ``path``, until ``give_back``. Garbage collection
    does not give it back, because the logs may still be in use, but warns."""

    def __init__(self, path: str, lock: Lock) -> None:
        self._path = path
        self._lock = lock
        self._process = this_process()  # a forked child may only read
        self.is_over = False

    def check(self) -> None:
        """Raise LogDirError in a forked child, KafkaStorageError after ``give_back``."""
        self._process.check(self._path)
        if self.is_over:
            raise KafkaStorageError(f"{self._path} is closed; reopen it (another process may own it now)")

    def give_back(self) -> None:
        """Release the directory; a second call does nothing."""
        self.is_over = True
        self._lock.close()

    def __del__(self) -> None:
        if not self.is_over and self._process.is_here:
            text = f"{self._path} was not closed: it stays locked until the process ends"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)


def take_directory(files: DataFiles, path: str) -> Ownership:
    """Lock a data directory, creating it and its parents if missing. Raises LogDirError if it has an owner or
    is another kind of directory; OSError."""
    check_data_directory(files, path)
    try:
        make_directories(files, path)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise LogDirError(f"{path} cannot be created: {error.strerror or error}") from error
    lock_file = files.join(path, LOCK_FILE)
    lock = files.lock(lock_file)
    if lock is None:
        raise locked_error(files, path)
    return Ownership(path, lock)


def locked_error(files: DataFiles, path: str) -> LogDirError:
    """Return the error about a data directory that has an owner, with the process id if it is known."""
    lock_file = files.join(path, LOCK_FILE)
    if files.is_locked_here(lock_file):
        return LogDirError(
            f"{path} is locked by another owner in this process: close its Broker or DataDirectory first"
        )
    number = files.locking_process(lock_file)
    process = "" if number is None else f", process {number}"
    return LogDirError(f"{path} is locked by another owner{process}: stop the broker that uses it first")


def check_data_directory(files: FileSystem, path: str) -> None:
    """Raise LogDirError for a file, and for a directory that is neither empty nor a broker's, without writing
    anything. A directory whose creation was interrupted by a crash counts as empty. Without
    ``meta.properties``, directories named like partitions must be partitions, see ``foreign_names``. Raises
    OSError."""
    if not files.is_directory(path):
        if files.exists(path):
            raise LogDirError(f"{path} is a file, not a directory")
        return
    entries = files.list(path)
    if any(entry.name == META_PROPERTIES for entry in entries):
        return
    if foreign := foreign_names(files, path, entries):
        more = f" and {len(foreign) - MOST_NAMED:,} more" if len(foreign) > MOST_NAMED else ""
        raise LogDirError(
            f"{path} has no {META_PROPERTIES}, and contains foreign files: it is not a data directory, "
            f"and nothing was written; found: {', '.join(foreign[:MOST_NAMED])}{more}. Name a new or empty "
            "directory, or move these files away"
        )
