"""Every bit and every length of a file, or an even sample of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["EVERYTHING", "Cut", "Flip", "mutations"]

EVERYTHING = os.environ.get("TXNKAFKA_LONG", "0") not in ("", "0")


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
