"""Options with names or patterns of groups or transactional ids: matching, and the error for no match."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase


def is_named(name: str, patterns: Collection[str]) -> bool:
    """Return True if ``name`` equals or matches one of ``patterns``, or if no patterns are given."""
    return not patterns or any(_matches(name, pattern) for pattern in patterns)


def check_patterns(
    patterns: Collection[str], names: Collection[str], noun: str, plural: str, place: str
) -> None:
    """Raise KafkaError for a pattern that matches none of ``names``, the names in ``place``."""
    for pattern in patterns:
        if not any(_matches(name, pattern) for name in names):
            from txnkafka.errors import KafkaError
            from txnkafka.logdir.names import what_there_is

            there = what_there_is(plural, sorted(names), pattern)
            raise KafkaError(f"no {noun} {pattern} in {place}; {there}")


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)
