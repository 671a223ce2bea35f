"""``CharacterClass``: which characters a part of a pattern matches, with case folding and Unicode categories.

Characters that differ in case only are those of Unicode's simple case folding, as in RE2.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple
from unicodedata import category

__all__ = ["CATEGORIES", "LAST", "CharacterClass", "ClassItem", "Ranges"]

LAST: Final = 0x10FFFF
_LAST_CASED: Final = 0x1E943
_FOLDED_ASCII: Final = {ord("k"): 0x212A, ord("s"): 0x17F}  # KELVIN SIGN, LONG S
_LETTERS: Final = {"C": "cfos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
CATEGORIES: Final = {
    *_LETTERS, *(kind + letter for kind, letters in _LETTERS.items() for letter in letters), "Any",
}  # fmt: skip
"""Unicode's general categories, and all characters."""

Ranges = tuple[tuple[int, int], ...]


class ClassItem(NamedTuple):
    """Characters of these ranges, and those of a category; with ``is_negated``, all others."""

    ranges: Ranges
    category: str = ""
    is_negated: bool = False


class CharacterClass(NamedTuple):
    """One character of one of the items, or of none if ``is_inverted``. With ``folds``, case does not
    matter."""

    items: tuple[ClassItem, ...]
    is_inverted: bool = False
    folds: bool = False

    @property
    def steps(self) -> int:
        """What a comparison costs."""
        return sum(1 + len(item.ranges) for item in self.items)

    def has(self, code: int) -> bool:
        """Whether the class has the character."""
        codes = _same_but_for_case(code) if self.folds else (code,)
        return self.is_inverted != any(_has(item, codes) for item in self.items)


def _has(item: ClassItem, codes: tuple[int, ...]) -> bool:
    is_there = any(low <= code <= high for code in codes for low, high in item.ranges)
    if not is_there and item.category:
        is_there = any(_is_of(item.category, code) for code in codes)
    return is_there != item.is_negated


def _is_of(name: str, code: int) -> bool:
    return name == "Any" or category(chr(code)).startswith(name)


def _same_but_for_case(code: int) -> tuple[int, ...]:
    if code >= 0x80:
        return _orbits().get(code, (code,))
    lower = ord(chr(code).lower())
    more = (_FOLDED_ASCII[lower],) if lower in _FOLDED_ASCII else ()
    return (lower, ord(chr(code).upper()), *more)


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """The characters that are equal but for case, by each of them."""
    found: dict[str, list[int]] = {}
    for code in range(_LAST_CASED + 1):
        folded = _simply_folded(chr(code))
        if folded != chr(code):
            found.setdefault(folded, [ord(folded)]).append(code)
    return {code: tuple(codes) for codes in found.values() for code in codes}


def _simply_folded(character: str) -> str:
    """The folding that keeps one character one character."""
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character
