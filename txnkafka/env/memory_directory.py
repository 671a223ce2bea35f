"""Directories in memory, for data that ends with the process."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress

from txnkafka.env.data_files import LocalDataFiles
from txnkafka.env.durable import remove_tree

_SHARED_MEMORY = "/dev/shm"
_NAME = re.compile(r"txnkafka-([0-9]+)-[a-z0-9_]+")


def memory_directory() -> str:
    """Create an empty directory in memory, or a temporary one if this system has no file system in memory.
    Directories of this user's processes that were killed are removed. Raises OSError."""
    parent = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else tempfile.gettempdir()
    for entry in os.scandir(parent):
        found = _NAME.fullmatch(entry.name)
        if found and not _is_alive(int(found[1])):
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    remove_tree(LocalDataFiles(), entry.path)
    return tempfile.mkdtemp(prefix=f"txnkafka-{os.getpid()}-", dir=parent)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # of another user
    return True
