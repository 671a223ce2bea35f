"""Isolation levels in requests."""

from __future__ import annotations

from txnkafka.errors import InvalidRequestError
from txnkafka.model import IsolationLevel

_LEVELS = (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)


def isolation_level(number: int) -> IsolationLevel:
    """Return the isolation level for a number. Raises InvalidRequestError for an unknown number."""
    if number not in (0, 1):
        raise InvalidRequestError(f"unknown isolation level {number}: it must be 0 or 1")
    return _LEVELS[number]
