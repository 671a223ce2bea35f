"""The content of a disk, by inode, and the changes to it. A file or a directory is an inode (a number) that
names refer to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ROOT = 0  # the inode of the root directory
NOWHERE = (-1, "")  # no directory, no name


class Disk(NamedTuple):
    """A disk at one moment, entirely durable. Disks share their contents, which are immutable."""

    contents: Mapping[int, bytes]
    names: Mapping[int, Mapping[str, int]]
    modified_ms: Mapping[int, int]
    next_inode: int


EMPTY_DISK = Disk({}, {ROOT: {}}, {ROOT: 0}, ROOT + 1)


class Change(NamedTuple):
    """One call that changed the disk, or made a change durable.

    ``kind`` is the name of the call: of a file (``inode``) write, truncate, sync, failed_sync,
    set_modified_ms; of a name in ``directory`` create, make_directory, rename (from ``source``, a directory
    and a name), remove; of a directory (``inode``) sync_directory. ``position`` is the position of the first
    written byte, or the size after a truncation."""

    kind: str
    path: str
    inode: int
    modified_ms: int
    position: int = 0
    content: bytes = b""
    directory: int = -1
    name: str = ""
    source: tuple[int, str] = NOWHERE
