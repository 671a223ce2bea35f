"""The limits of one trigger, and their division among partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from txnkafka.model import TopicPartition

DEFAULT_DELAY_MS = 15 * 60 * 1000


class TriggerLimits(NamedTuple):
    """``min_offsets`` are awaited for at most ``max_delay_ms`` after the previous batch. None: no limit."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = DEFAULT_DELAY_MS
    max_bytes: int | None = None

    def checked(self) -> TriggerLimits:
        """Return the limits. Raises ValueError for limits that are not positive or contradict each other."""
        for name, value in (
            ("maxOffsetsPerTrigger", self.max_offsets),
            ("minOffsetsPerTrigger", self.min_offsets),
            ("maxBytesPerTrigger", self.max_bytes),
        ):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.max_offsets is not None and (self.min_offsets or 0) > self.max_offsets:
            raise ValueError(
                f"minOffsetsPerTrigger ({self.min_offsets}) is above maxOffsetsPerTrigger "
                f"({self.max_offsets})"
            )
        return self


def shares(available: Mapping[TopicPartition, int], limit: int, turn: int = 0) -> dict[TopicPartition, int]:
    """Divide ``limit`` among partitions in proportion to the available numbers. The sum is the limit, or all
    that is available.

    Each partition with something gets at least 1, so that none waits for the others; if the limit is too
    small for that, some get 1, and others at another ``turn``."""
    wanted = {partition: count for partition, count in sorted(available.items()) if count > 0}
    if sum(wanted.values()) <= limit:
        return wanted
    if limit < len(wanted):
        names = list(wanted)
        return {names[(turn + i) % len(names)]: 1 for i in range(limit)}
    spare, total = limit - len(wanted), sum(wanted.values()) - len(wanted)
    found = {partition: 1 + spare * (count - 1) // total for partition, count in wanted.items()}
    by_remainder = sorted(wanted, key=lambda partition: -(spare * (wanted[partition] - 1) % total))
    for partition in by_remainder[: limit - sum(found.values())]:
        found[partition] += 1
    return found


def limited(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int | None
) -> dict[TopicPartition, int]:
    """Return the ends of ranges that have at most ``limit`` offsets together. The result depends on the
    arguments alone."""
    if limit is None:
        return dict(ends)
    available = {partition: end - begins[partition] for partition, end in ends.items()}
    some = shares(available, limit, sum(begins.values()))
    return {partition: begins[partition] + some.get(partition, 0) for partition in ends}
