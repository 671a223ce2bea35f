"""Lays out a table for a width. A number is never folded: where a table is too wide, long names are
shortened, then columns are left out, and at last a row becomes a block with a line for each field.

Pure functions over cells that are text already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Fitted", "Layout", "aligned", "fitted", "shortened"]

SHORT, SHORTEST = 20, 12  # characters of a name that are shown: before columns go, and at last
BETWEEN = 2  # spaces between two columns
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

Cells = list[list[str]]


class Layout(NamedTuple):
    """What may be done to a table that is too wide: the columns whose names may be shortened, and those that
    may be left out, the least important one first."""

    shorten: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class Fitted(NamedTuple):
    """A table that fits: its columns with their widths, or ``widths`` None where each row becomes a block.
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


def _widths(names: Sequence[str], rows: Cells) -> list[int]:
    return [max(len(name), *(len(row[i]) for row in rows), 0) for i, name in enumerate(names)]


def _total(widths: list[int]) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1)


def _least(name: str, layout: Layout, least: int) -> int | None:
    """Return how narrow a column may become; None: no narrower than it is."""
    return max(least, len(name)) if name in layout.shorten else None


def _shrunk(widths: list[int], least: list[int | None], width: int) -> list[int] | None:
    """Return smaller widths with which the table fits, the widest column shortened first; None if none do."""
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
    """Return ``text`` in at most ``width`` characters. Of a path the end is kept, of another name the
    beginning and, since numbers are there, some of the end."""
    if len(text) <= width:
        return text
    if "/" in text:
        return ELLIPSIS + text[len(text) - width + 1 :]
    end = (width - 1) // 3
    return text[: width - 1 - end] + ELLIPSIS + text[len(text) - end :]


def _is_numeric(cell: str) -> bool:
    """Whether a cell is aligned to the right: a number, with or without a unit, or nothing."""
    return cell == "-" or cell[:1].isdigit() or (cell[:1] == "-" and cell[1:2].isdigit())


def aligned(table: Fitted) -> Iterator[list[str]]:
    """Yield the head and the rows with padded cells."""
    assert table.widths is not None
    count = len(table.names)
    right = [bool(table.rows) and all(_is_numeric(row[i]) for row in table.rows) for i in range(count)]
    for row in (table.names, *table.rows):
        yield [
            cell.rjust(width) if align else cell.ljust(width)
            for cell, width, align in zip(row, table.widths, right, strict=True)
        ]
