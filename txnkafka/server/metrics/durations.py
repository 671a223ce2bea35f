"""``Durations``: a histogram of durations with fixed buckets."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets, in seconds; a bucket without a bound follows."""


class Durations:
    """``counts`` by bucket, and the ``total`` in seconds."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Add one duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds
