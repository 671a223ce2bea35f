"""Errors of the disk that pass when somebody makes room: a log outlives them."""

from __future__ import annotations

import errno
from typing import Final

__all__ = ["DISK_FULL", "NO_DESCRIPTOR"]

DISK_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
NO_DESCRIPTOR: Final = frozenset((errno.EMFILE, errno.ENFILE))
