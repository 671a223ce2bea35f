"""Topic names: matching patterns, recognizing Kafka's own topics, hints for unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from txnkafka.model import TopicPartition

LISTED = 10
LISTS = {"groups": "groups", "transactional ids": "txns"}  # kind → the command that lists all; default: ls
INTERNAL = "__"  # __consumer_offsets, __transaction_state, __share_group_state, __cluster_metadata


def topic_matches(topic: str, pattern: str) -> bool:
    """Return True if a topic matches a shell pattern. Like hidden files, Kafka's own topics only match a
    pattern that also begins with __."""
    if topic == pattern:
        return True
    return fnmatchcase(topic, pattern) and is_internal(topic) == is_internal(pattern)


def is_internal(topic: str) -> bool:
    """Return True for Kafka's own topics, such as ``__consumer_offsets``."""
    return topic.startswith(INTERNAL)


def internal_last(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Sort partitions: the user's topics first, then Kafka's own."""
    return sorted(partitions, key=lambda each: (is_internal(each.topic), each))


def without_internal(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Leave out the partitions of Kafka's own topics, unless no others exist."""
    there = list(partitions)
    return [each for each in there if not is_internal(each.topic)] or there


def what_there_is(kind: str, names: Sequence[str], wanted: str) -> str:
    """Return names similar to ``wanted`` as a question, else the first existing names. ``wanted`` is empty
    for names without similarity, such as numbers."""
    lower = {name.lower(): name for name in reversed(names)}
    near = get_close_matches(wanted.lower(), lower, n=3, cutoff=0.7)
    if near:
        return f"did you mean {' or '.join(lower[name] for name in near)}?"
    if not names:
        return f"no {kind} exist"
    command = f"'txnkafka {LISTS.get(kind, 'ls')}'"
    more = f" and {len(names) - LISTED:,} more, which {command} lists" if len(names) > LISTED else ""
    return f"{kind} here: {', '.join(names[:LISTED])}{more}"
