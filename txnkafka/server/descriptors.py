"""File descriptors of the process, which connections and the files of logs share.

A log that cannot open a file refuses appends, and an accept that fails is tried again at once: so connections
are refused before there are no descriptors left.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

__all__ = ["most_connections", "raise_limit"]

_FOR_FILES: Final = 1_000


def raise_limit() -> None:
    """Raise the soft limit to the hard one, as a JVM does, if the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections() -> int:
    """How many connections leave enough descriptors for files: a third of them, or all but a thousand."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 62 if soft == resource.RLIM_INFINITY else max(soft // 3, soft - _FOR_FILES)
