"""Isolation levels as requests have them."""

from __future__ import annotations

from txnkafka.errors import InvalidRequestError
from txnkafka.model import IsolationLevel

__all__ = ["isolation_level"]

_LEVELS = (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)


def isolation_level(number: int) -> IsolationLevel:
    """The level of a number. Raises InvalidRequestError for one that Kafka does not know."""
    if number not in (0, 1):
        raise InvalidRequestError(f"there is no isolation level {number}")
    return _LEVELS[number]
