"""Random numbers of the machine, for seeds and jitter. They do not depend on PYTHONHASHSEED."""

from __future__ import annotations

import os
import secrets

__all__ = ["random_below", "random_bytes"]


def random_bytes(count: int) -> bytes:
    """``count`` bytes that nobody can foresee."""
    return os.urandom(count)


def random_below(limit: int) -> int:
    """A number from 0 to ``limit`` - 1, all equally likely. Raises ValueError for a limit below 1."""
    return secrets.randbelow(limit)
