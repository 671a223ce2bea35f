"""Random numbers and unique names. A simulation replaces their source by a seeded one."""

from __future__ import annotations

from contextlib import contextmanager
from random import Random as Random
from random import SystemRandom
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_source: Random = SystemRandom()


def random_below(limit: int) -> int:
    """Return a uniformly distributed number from 0 to ``limit`` - 1. Raises ValueError for a limit below
    1."""
    return _source.randrange(limit)


def unique_name() -> str:
    """Return a unique name: a random UUID in 32 hexadecimal digits."""
    bits = _source.getrandbits(128)
    version = (bits & ~(0xF << 76) & ~(3 << 62)) | 4 << 76 | 2 << 62
    return f"{version:032x}"


@contextmanager
def random_from(source: Random) -> Iterator[None]:
    """Take all random numbers of this process from ``source`` within the context."""
    global _source
    before, _source = _source, source
    try:
        yield
    finally:
        _source = before
