"""Arguments of ``Admin``: names and partitions, one or several, and how messages list partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")


def names_of(names: str | Iterable[str]) -> list[str]:
    """Return names without repetitions; a text is one name."""
    return [names] if isinstance(names, str) else list(dict.fromkeys(names))


def partitions_of(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Return partitions without repetitions; pairs are partitions, and so is a single one."""
    if isinstance(partitions, TopicPartition):
        return [partitions]
    return list(dict.fromkeys(TopicPartition(*each) for each in partitions))


def by_partition(values: Mapping[TopicPartition, T]) -> dict[TopicPartition, T]:
    """Return values by partition; pairs are partitions."""
    return {TopicPartition(*each): value for each, value in values.items()}


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of partitions by topic."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found
