"""Locks files like Java: POSIX record locks over the whole file, without waiting.

Such a lock belongs to the process: the same process could lock the file again, and closing *any* descriptor
of the file releases the lock. So this module records the inodes that this process has locked, and never opens
a locked file to test its lock. A forked child has none of its parent's locks.

Only regular files are opened, without blocking: a FIFO would block all users of ``_guard``, including fork().
A link is not locked, because opening it may create a file elsewhere.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import sys
import threading

LINK = "is a symbolic link, and links are never written to: put the file itself in its place"
NOT_REGULAR = "not a regular file"

_held: dict[tuple[int, int], FileLock] = {}
_guard = threading.Lock()
_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK  # the regular file may just have been replaced by a FIFO


class FileLock:
    """A lock that this process holds until ``close`` or its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Release the lock."""
        with _guard:
            if self._descriptor >= 0:
                del _held[_identity(os.fstat(self._descriptor))]
                self.forget()

    def forget(self) -> None:
        """Close the descriptor; in a child, this does not affect the parent's lock."""
        os.close(self._descriptor)
        self._descriptor = -1


def lock_file(path: str) -> FileLock | None:
    """Lock a file, creating it if necessary; return None when this or another process has the lock. Raises
    OSError: ELOOP for a link, EINVAL for other files that are not regular."""
    with _guard:
        if _is_held(path):
            return None
        check_regular(path, follow=False)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | _FLAGS, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, NOT_REGULAR)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise OSError(error.errno, error.strerror, path) from error
        lock = _held[_identity(os.fstat(descriptor))] = FileLock(descriptor)
        return lock


def is_file_locked(path: str) -> bool:
    """Return True if this or another process has locked a file; False if it cannot be opened or is not
    regular."""
    if not os.path.isfile(path):
        return False
    with _guard:
        if _is_held(path):
            return True
        try:
            descriptor = os.open(path, os.O_RDONLY | _FLAGS)
        except OSError:
            return False
        try:
            return _conflict(descriptor)[0] != fcntl.F_UNLCK
        finally:
            os.close(descriptor)


def locking_process(path: str) -> int | None:
    """Return the id of the process that has locked a file; None if it is not locked, or the process is not
    visible here (another machine's, or outside of the container)."""
    with _guard:
        if _is_held(path):
            return os.getpid()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | _FLAGS)
        except OSError:
            return None
        try:
            kind, process = _conflict(descriptor)
        finally:
            os.close(descriptor)
    return process if kind != fcntl.F_UNLCK and process > 0 else None


def is_file_locked_here(path: str) -> bool:
    """Return True if this process has locked a file."""
    with _guard:
        return _is_held(path)


def check_regular(path: str, *, follow: bool) -> None:
    """Raise OSError if the path exists and is not a regular file. Does not open it: that may affect a
    device."""
    try:
        mode = os.stat(path, follow_symlinks=follow).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, LINK, path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, NOT_REGULAR, path)


def _is_held(path: str) -> bool:
    try:
        return _identity(os.stat(path)) in _held
    except OSError:
        return False


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _lock_request() -> bytes:
    if sys.platform == "darwin":
        return struct.pack("@qqihh", 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    return struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def _conflict(descriptor: int) -> tuple[int, int]:
    """Return the type of the lock that another process has, F_UNLCK without one, and the process id. Only
    tests: a lock held even for a moment could make a starting broker fail."""
    answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, _lock_request())
    if sys.platform == "darwin":
        _, _, process, kind, _ = struct.unpack("@qqihh", answer)
    else:
        kind, _, _, _, process = struct.unpack("@hhqqi4x", answer)
    return int(kind), int(process)


def _begin_as_child() -> None:
    for lock in _held.values():
        lock.forget()
    _held.clear()
    _guard.release()


# during a fork, no thread is between opening and locking
os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_begin_as_child)
