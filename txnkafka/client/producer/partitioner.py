"""Partitions for records: by the hash of the key, or one partition at a time for records without keys.

Source: ``BuiltInPartitioner`` (KIP-480, KIP-794), ``Utils.murmur2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from txnkafka.env import random_below


class StickyPartition:
    """The partition that records without keys of one topic go to, until ``batch_size`` bytes have.

    ``queues`` returns pairs of the partitions that have a leader and the number of their batches that wait;
    a partition is chosen more often the fewer its batches are. Without leaders all partitions are equal."""

    def __init__(self, batch_size: int, queues: Callable[[], Sequence[tuple[int, int]]]) -> None:
        self._batch_size = max(1, batch_size)
        self._queues = queues
        self._bytes = 0
        self.number = self._next()

    def filled(self, size: int) -> None:
        """Count a closed batch; choose another partition after enough bytes."""
        self._bytes += size
        if self._bytes >= self._batch_size:
            self._bytes = 0
            self.number = self._next()

    def _next(self) -> int:
        queues = self._queues()
        return chosen(queues, random_below) if len(queues) > 1 else queues[0][0]


def chosen(queues: Sequence[tuple[int, int]], below: Callable[[int], int]) -> int:
    """Choose a partition of (partition, waiting batches) at random; ``below(n)`` returns 0 to n - 1.

    The weight of a partition is the longest queue plus one, minus its own."""
    longest = max(count for _, count in queues) + 1
    ends = list(accumulate(longest - count for _, count in queues))
    point = below(ends[-1])
    return next(number for (number, _), end in zip(queues, ends, strict=True) if point < end)
