"""File descriptors of the process, shared by connections and the files of logs.

A log that cannot open a file refuses appends, and a failed accept is retried at once. So connections are
refused before the descriptors run out.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_FOR_FILES: Final = 1_000


def raise_limit() -> None:
    """Raise the soft limit to the hard one, as a JVM does, if the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections() -> int:
    """Return the number of connections that leaves enough descriptors for files: a third of the limit, or
    the limit minus 1,000 if that is more."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 62 if soft == resource.RLIM_INFINITY else max(soft // 3, soft - _FOR_FILES)
