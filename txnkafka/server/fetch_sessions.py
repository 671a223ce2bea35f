"""Incremental fetch sessions (KIP-227)."""

from __future__ import annotations

__all__ = ["FetchSessions"]


class FetchSessions:
    """Sessions of all connections."""
