"""Distributions of numbers, in memory independent of their count.

Counts are kept by bucket: each number below 256 has its own bucket, and each larger power of two is divided
into 128 buckets. Count, sum, minimum and maximum are exact; a percentile is at most 0.8 % too large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT, DIVISIONS = 256, 128


class Distribution:
    """A distribution of numbers not below 0 (negative numbers count as 0)."""

    __slots__ = ("_buckets", "count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.count = self.total = self.maximum = 0
        self.minimum: int | None = None
        self._buckets: Counter[int] = Counter()

    def add(self, numbers: Sequence[int] | NDArray[Any]) -> None:
        """Add numbers to the distribution."""
        import numpy as np

        values = np.maximum(np.asarray(numbers, np.int64), 0)
        if not len(values):
            return
        self.count += len(values)
        self.total += int(values.sum())
        low, high = int(values.min()), int(values.max())
        self.minimum = low if self.minimum is None else min(self.minimum, low)
        self.maximum = max(self.maximum, high)
        buckets, counts = np.unique(_buckets(values), return_counts=True)
        for bucket, count in zip(buckets.tolist(), counts.tolist(), strict=True):
            self._buckets[bucket] += count

    def percentile(self, percent: float) -> int | None:
        """Return the smallest number that is at least as large as ``percent`` % of the numbers; None without
        numbers."""
        left = max(1, -int(-self.count * percent // 100))
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return min(_largest(bucket), self.maximum)
        return None

    def as_dict(self) -> dict[str, int | float | None]:
        """Return ``min``, ``mean``, ``p50``, ``p99``, ``max``, each None without numbers."""
        return {
            "min": self.minimum,
            "mean": round(self.total / self.count, 1) if self.count else None,
            "p50": self.percentile(50),
            "p99": self.percentile(99),
            "max": self.maximum if self.count else None,
        }


def _buckets(values: NDArray[np.int64]) -> NDArray[Any]:
    import numpy as np

    mantissa, exponent = np.frexp(values.astype(np.float64))  # value = mantissa * 2^exponent, mantissa ≥ ½
    coarse = (exponent.astype(np.int64) - 8) * DIVISIONS + (mantissa * EXACT).astype(np.int64)
    return np.where(values < EXACT, values, coarse)


def _largest(bucket: int) -> int:
    """Return the largest number in a bucket."""
    if bucket < EXACT:
        return bucket
    shift = bucket // DIVISIONS - 1
    return ((bucket - shift * DIVISIONS + 1) << shift) - 1
