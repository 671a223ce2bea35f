"""Checks a response against the limits of the fetch: the number of bytes, and the time to wait.

Source: ``FetchRequest`` and KIP-74: the first batch of the response is complete, whatever its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LENGTH_END: Final = 12  # base offset and length, which the length excludes


class FetchLimits(NamedTuple):
    """The limits of a request: bytes of the response and of each partition, and when it may be empty."""

    max_bytes: int
    partition_max_bytes: int
    min_bytes: int
    max_wait_ms: int


def broken_limits(
    limits: FetchLimits, answer: Sequence[tuple[str, memoryview]], waited_us: int, *, has_errors: bool
) -> Iterator[str]:
    """Yield the limits that a response violates: the name and the bytes of each partition."""
    left = limits.max_bytes
    for name, data in answer:
        size, most = len(data), min(left, limits.partition_max_bytes)
        is_first = left == limits.max_bytes
        if size > (max(most, _first_batch(data)) if is_first else max(most, 0)):
            yield f"{size} bytes of {name}, where {most} are the most"
        left -= size
    is_empty = left == limits.max_bytes and not has_errors
    if is_empty and limits.min_bytes > 0 and waited_us < (limits.max_wait_ms - 1) * 1000:
        yield f"nothing after {waited_us} us, where {limits.max_wait_ms} ms are to be waited for records"


def _first_batch(data: memoryview) -> int:
    """Return the size of the first batch in bytes, 0 without one."""
    return _LENGTH_END + int.from_bytes(data[8:_LENGTH_END], "big") if len(data) >= _LENGTH_END else 0
