"""Checks a response against the limits of the fetch: the number of bytes, and the time to wait.

Source: ``FetchRequest`` and KIP-74: the first batch of the response is complete, whatever its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LENGTH_END: Final = 12  # base offset and length, which the length excludes


def broken_limits(request: Any, answer: Sequence[Any], waited_us: int) -> Iterator[str]:
    """Yield the limits of a ``FetchRequest`` that the response (one ``Fetched`` per partition) violates."""
    limits = {each.topic_partition: each.max_bytes for each in request.partitions}
    left = request.max_bytes
    for fetched in answer:
        size, most = len(fetched.data), min(left, limits[fetched.partition])
        is_first = left == request.max_bytes
        if size > (max(most, _first_batch(fetched.data)) if is_first else max(most, 0)):
            yield f"{size} bytes of {fetched.partition}, where {most} are the most"
        left -= size
    is_empty = left == request.max_bytes and not any(fetched.error for fetched in answer)
    if is_empty and request.min_bytes > 0 and waited_us < (request.max_wait_ms - 1) * 1000:
        yield f"nothing after {waited_us} us, where {request.max_wait_ms} ms are to be waited for records"


def _first_batch(data: memoryview) -> int:
    """Return the size of the first batch in bytes, 0 without one."""
    return _LENGTH_END + int.from_bytes(data[8:_LENGTH_END], "big") if len(data) >= _LENGTH_END else 0
