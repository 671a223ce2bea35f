"""Disk errors that end when the operator frees space or descriptors: a log survives them."""

from __future__ import annotations

import errno
from typing import Final

DISK_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
NO_DESCRIPTOR: Final = frozenset((errno.EMFILE, errno.ENFILE))
