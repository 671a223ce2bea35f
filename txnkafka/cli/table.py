"""Lays out a table for a width. Numbers are never folded: if a table is too wide, long names are shortened,
then columns are left out, and finally each row becomes a block with a line per field.

Pure functions over cells that are text already.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SHORT, SHORTEST = 20, 12  # characters of a name that are shown: before columns go, and at last
BETWEEN = 2  # spaces between two columns
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

Cells = list[list[str]]


class Layout(NamedTuple):
    """Permitted changes to a table that is too wide: columns whose names may be shortened, and columns that
    may be left out, the least important first."""

    shorten: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class Fitted(NamedTuple):
    """A table that fits: its columns with their widths, or ``widths`` None if each row becomes a block.
    ``dropped`` are the columns left out."""

    names: list[str]
    rows: Cells
    widths: list[int] | None
    dropped: list[str]


def fitted(names: Sequence[str], rows: Cells, layout: Layout, width: int | None) -> Fitted:
    """Fit a table into ``width`` columns; None: no limit."""
    droppable = [name for name in layout.drop if name in names]
    choices = [(least, count) for least in (SHORT, SHORTEST) for count in range(len(droppable) + 1)]
    for least, count in choices:
        dropped = droppable[:count]
        kept = [i for i, name in enumerate(names) if name not in dropped]
        some = [names[i] for i in kept]
        cells = [[row[i] for i in kept] for row in rows]
        widths = _widths(some, cells)
        if width is None or _total(widths) <= width:
            return Fitted(some, cells, widths, dropped)
        limits = _shrunk(widths, [_least(name, layout, least) for name in some], width)
        if limits is not None:
            cells = [
                [shortened(cell, limit) for cell, limit in zip(row, limits, strict=True)] for row in cells
            ]
            return Fitted(some, cells, limits, dropped)
    return Fitted(list(names), rows, None, [])


def width_of(text: str) -> int:
    """Return the number of terminal columns that ``text`` takes."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


def _width_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):  # combining, such as an accent on the previous letter
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def beginning(text: str, width: int) -> str:
    """Return the longest prefix of ``text`` that fits into ``width`` columns."""
    used = 0
    for at, character in enumerate(text):
        used += _width_of(character)
        if used > width:
            return text[:at]
    return text


def _end(text: str, width: int) -> str:
    used, begin = 0, len(text)
    for at in range(len(text) - 1, -1, -1):
        columns = _width_of(text[at])
        used += columns
        if used > width:
            break
        if columns:  # an accent stays with its letter
            begin = at
    return text[begin:]


def _widths(names: Sequence[str], rows: Cells) -> list[int]:
    return [max(len(name), *(width_of(row[i]) for row in rows), 0) for i, name in enumerate(names)]


def _total(widths: list[int]) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1)


def _least(name: str, layout: Layout, least: int) -> int | None:
    """Return the minimum width of a column; None if it may not be narrowed."""
    return max(least, len(name)) if name in layout.shorten else None


def _shrunk(widths: list[int], least: list[int | None], width: int) -> list[int] | None:
    """Return smaller widths that fit, shortening the widest column first; None if impossible."""
    limits = list(widths)
    able = [i for i, each in enumerate(least) if each is not None and widths[i] > each]
    while _total(limits) > width:
        if not able:
            return None
        widest = max(able, key=limits.__getitem__)
        limits[widest] -= 1
        if limits[widest] == least[widest]:
            able.remove(widest)
    return limits


def shortened(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` columns. A path keeps its end; another name keeps its beginning
    and part of its end, which often has a number."""
    if width_of(text) <= width:
        return text
    if "/" in text:
        return ELLIPSIS + _end(text, width - 1)
    end = _end(text, (width - 1) // 3)
    return beginning(text, width - 1 - width_of(end)) + ELLIPSIS + end


def _is_numeric(cell: str) -> bool:
    """Return True if a cell is aligned to the right: a number, with or without a unit, or an empty cell."""
    return cell == "-" or cell[:1].isdigit() or (cell[:1] == "-" and cell[1:2].isdigit())


def aligned(table: Fitted) -> Iterator[list[str]]:
    """Yield the head and the rows with padded cells."""
    assert table.widths is not None
    count = len(table.names)
    right = [bool(table.rows) and all(_is_numeric(row[i]) for row in table.rows) for i in range(count)]
    for row in (table.names, *table.rows):
        yield [
            f"{_filling(cell, width)}{cell}" if align else f"{cell}{_filling(cell, width)}"
            for cell, width, align in zip(row, table.widths, right, strict=True)
        ]


def _filling(cell: str, width: int) -> str:
    return " " * (width - width_of(cell))
