"""Every bit and every length of a file, or an even sample of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.conftest import BRIEF, LONG

__all__ = ["EVERYTHING", "SPARSER", "Cut", "Flip", "mutations"]

EVERYTHING = LONG
SPARSER = 5 if BRIEF else 1  # times a test's step


class Flip(NamedTuple):
    """One flipped bit."""

    position: int
    bit: int

    def of(self, content: bytes) -> bytes:
        changed = content[self.position] ^ 1 << self.bit
        return content[: self.position] + bytes([changed]) + content[self.position + 1 :]


class Cut(NamedTuple):
    """The file truncated at a length."""

    length: int

    def of(self, content: bytes) -> bytes:
        return content[: self.length]


def mutations(content: bytes, step: int, first: int = 0) -> Iterator[Flip | Cut]:
    """Yield one in ``step`` flips and one in ``step`` truncations, from number ``first`` on; in long runs all
    of them."""
    step, first = (1, 0) if EVERYTHING else (step, first % step)
    for number in range(first, 8 * len(content), step):
        yield Flip(*divmod(number, 8))
    for length in range(first % max(len(content), 1), len(content), step):
        yield Cut(length)
