"""Random numbers, for jitter."""

from __future__ import annotations

import secrets

__all__ = ["random_below"]


def random_below(limit: int) -> int:
    """Return a uniformly distributed number from 0 to ``limit`` - 1. Raises ValueError for a limit below
    1."""
    return secrets.randbelow(limit)
