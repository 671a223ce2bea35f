"""``Subscription``: the topics of a consumer, its partitions, and the position in each.

Source: ``SubscriptionState``.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING

from txnkafka.errors import IllegalStateError

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable

    from txnkafka.client.consumer.fetched_data import FetchedData
    from txnkafka.model import TopicPartition


class Place(enum.Enum):
    """A position that must be looked up."""

    COMMITTED = "committed"
    BY_POLICY = "by policy"
    """The position of ``auto.offset.reset``."""
    BEGINNING = "beginning"
    END = "end"


class AssignedPartition:
    """A partition with its position: the offset of the next record that ``poll`` returns, and the leader
    epoch of the record before it (-1: unknown).

    ``fetch_offset`` is after the buffered data; it is the position when ``buffered`` is empty. ``place`` is
    None once the position is known. ``failure`` is raised by each poll until the position changes."""

    __slots__ = (
        "buffered", "epoch", "failure", "fetch_epoch", "fetch_offset", "high_watermark",
        "is_paused", "is_revoked", "last_stable_offset", "log_start_offset", "partition", "place", "position",
        "retry_ms",
    )  # fmt: skip

    def __init__(self, partition: TopicPartition, place: Place) -> None:
        self.partition = partition
        self.place: Place | None = place
        self.position = -1
        self.epoch = -1
        self.fetch_offset = -1
        self.fetch_epoch = -1
        self.buffered: deque[FetchedData] = deque()
        self.is_paused = False
        self.is_revoked = False  # delivered no more, while the group takes it away
        self.retry_ms = -1
        self.failure: Exception | None = None
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Continue at an offset."""
        self.drop_buffered()
        self.place, self.failure, self.retry_ms = None, None, -1
        self.position = self.fetch_offset = offset
        self.epoch = self.fetch_epoch = epoch

    def look_up(self, place: Place) -> None:
        """Continue at a place that must be looked up first."""
        self.drop_buffered()
        self.place, self.failure, self.retry_ms = place, None, -1
        self.position = self.fetch_offset = -1
        self.epoch = self.fetch_epoch = -1

    def advance(self, offset: int, epoch: int) -> None:
        """Set the position after records that were delivered."""
        self.position, self.epoch = offset, epoch

    def drop_buffered(self) -> None:
        """Drop fetched data; the next Fetch begins at the position."""
        self.buffered.clear()
        self.fetch_offset, self.fetch_epoch = self.position, self.epoch

    @property
    def is_deliverable(self) -> bool:
        """Return whether its records may be returned now."""
        return not (self.is_paused or self.is_revoked or self.failure is not None)

    @property
    def lag(self) -> int | None:
        """Offsets up to the last stable offset of the last response; None before one."""
        if self.last_stable_offset < 0 or self.position < 0:
            return None
        return max(0, self.last_stable_offset - self.position)


class Subscription:
    """Either subscribed (topics, pattern) or assigned by the user, not both. ``assigned`` has the partitions,
    in the order in which they are read; ``changes`` grows when the topics change."""

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.is_group = False
        self.assigned: dict[TopicPartition, AssignedPartition] = {}
        self.changes = 0

    @property
    def is_empty(self) -> bool:
        """Return whether neither ``subscribe`` nor ``assign`` was called."""
        return not self.is_group and not self.assigned

    def subscribe(self, topics: Collection[str], pattern: re.Pattern[str] | None) -> None:
        """Take the topics; the group assigns their partitions. Raises IllegalStateError after ``assign``."""
        if self.assigned and not self.is_group:
            raise IllegalStateError("subscribe after assign: call unsubscribe first, or use one of them only")
        self.is_group = True
        self.topics, self.pattern = frozenset(topics), pattern
        self.changes += 1

    def match(self, names: Iterable[str]) -> bool:
        """Take the topics that match the pattern; return whether they have changed."""
        pattern = self.pattern
        found = frozenset(name for name in names if pattern is not None and pattern.fullmatch(name))
        is_new = found != self.topics
        self.topics = found
        self.changes += is_new
        return is_new

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Replace the partitions of the user. Raises IllegalStateError after ``subscribe``."""
        if self.is_group:
            raise IllegalStateError("assign after subscribe: call unsubscribe first, or use one of them only")
        self.keep(partitions)
        self.add(partitions)

    def clear(self) -> None:
        """Remove topics and partitions."""
        self.is_group, self.topics, self.pattern = False, frozenset(), None
        self.assigned = {}
        self.changes += 1

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions, which begin at their committed offsets."""
        for partition in partitions:
            if partition not in self.assigned:
                self.assigned[partition] = AssignedPartition(partition, Place.COMMITTED)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Remove all other partitions."""
        kept = set(partitions)
        self.assigned = {key: state for key, state in self.assigned.items() if key in kept}

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions."""
        for partition in partitions:
            self.assigned.pop(partition, None)

    def of(self, partition: TopicPartition) -> AssignedPartition:
        """Return an assigned partition. Raises IllegalStateError."""
        found = self.assigned.get(partition)
        if found is None:
            raise IllegalStateError(f"{partition} is not assigned to this consumer")
        return found

    def some(self, wanted: Callable[[AssignedPartition], bool]) -> list[AssignedPartition]:
        """Return the partitions that fulfil a condition."""
        return [state for state in self.assigned.values() if wanted(state)]

    def positions(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return (position, epoch) of the partitions that have one."""
        return {key: (each.position, each.epoch) for key, each in self.assigned.items() if each.position >= 0}
