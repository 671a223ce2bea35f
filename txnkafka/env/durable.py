"""Durable changes from several calls of DataFiles, ordered so that a power cut between them is harmless."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.env.data_files import Bytes, DataFiles

NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)  # depends on the system


def write_durably(files: DataFiles, path: str, content: Bytes, *, suffix: str = ".tmp") -> None:
    """Write a small file atomically and durably: after a crash, ``path`` has the complete new content, or its
    old content if it existed.

    The content is first written to ``path`` with ``suffix``: concurrent writers need different suffixes.
    Raises OSError; then either the old or the new file exists."""
    replace_file(files, path, content, suffix=suffix)
    files.sync_directory(files.split(path)[0])


def replace_file(
    files: DataFiles, path: str, content: Bytes, *, suffix: str = ".tmp", is_synced: bool = True
) -> None:
    """Like ``write_durably`` without syncing the name: the caller syncs the directory, and the content unless
    ``is_synced``."""
    fresh = f"{path}{suffix}"
    if files.exists(fresh):  # left over from a crash
        files.remove(fresh)
    file = files.create(fresh)
    try:
        try:
            file.write(0, [content])
            if is_synced:
                file.sync()
        finally:
            file.close()
        files.rename(fresh, path)
    except OSError:
        with suppress(OSError):  # raise the first error
            files.remove(fresh)
        raise


def sync_new_directories(files: DataFiles, parent: str, paths: Iterable[str]) -> None:
    """Sync new directories in ``parent`` with their files, in one system call if available. Raises
    OSError."""
    if files.sync_file_system(parent):
        return
    for path in paths:
        for entry in files.list(path):
            file = files.open_to_write(files.join(path, entry.name))
            try:
                file.sync()
            finally:
                file.close()
        files.sync_directory(path)
    files.sync_directory(parent)


def make_directories(files: DataFiles, path: str) -> None:
    """Create a directory and its parents durably, unless they exist. Raises OSError with the directory that
    cannot be created."""
    if files.is_directory(path):
        return
    parent = files.split(path)[0]
    make_directories(files, parent)
    try:
        files.make_directory(path)
    except FileExistsError:
        if not files.is_directory(path):  # else another process has just created it
            raise
    except OSError as error:
        raise OSError(error.errno, f"cannot create the directory: {error.strerror}", path) from error
    files.sync_directory(parent)


def remove_tree(files: DataFiles, path: str) -> None:
    """Remove a file, or a directory and everything in it, if it exists. Links are not followed. Raises
    OSError."""
    doomed = [path]  # a stack, entries above their directory: recursion could reach thousands of levels
    while doomed:
        try:
            files.remove(doomed[-1])
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno not in NOT_EMPTY:
                raise
            below = files.list(doomed[-1])
            if not below:
                raise
            doomed += [files.join(doomed[-1], entry.name) for entry in below]
            continue
        doomed.pop()
