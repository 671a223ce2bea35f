"""Makes an SVG picture of what a terminal shows: a panel with text in its colours, which loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

__all__ = ["picture"]

CELL, LINE, MARGIN, FONT_SIZE = 8.4, 19, 16, 14  # pixels
FONTS = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
BACKGROUND, FOREGROUND = "#0d1117", "#d0d7de"
COLOURS = {
    "31": "#ff7b72", "32": "#3fb950", "33": "#e3b341", "35": "#d2a8ff", "36": "#79c0ff",
}  # fmt: skip
BOLD, DIM, RESET = "1", "2", "0"
PROMPT = "\x1b[36m$\x1b[0m "
_STYLE = re.compile(r"\x1b\[(\d*)m")
_WORDS = re.compile(r"\S+(?: \S+)*")  # between wider gaps


class Run(NamedTuple):
    """Characters of one style in a line, without wide gaps."""

    column: int
    text: str
    style: str


def picture(command: str, output: str, columns: int) -> str:
    """Return the SVG of a command and its output on a terminal of so many columns."""
    lines = [each for line in [PROMPT + command, *output.splitlines()] for each in _lines(line, columns)]
    width, height = round(columns * CELL + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    rows = [
        f'<text y="{MARGIN + number * LINE + FONT_SIZE}">{"".join(map(_tspan, line))}</text>'
        for number, line in enumerate(lines)
        if line
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}">',
            f"<title>{escape(command)}, on a terminal of {columns} columns</title>",
            f'<rect width="{width}" height="{height}" rx="6" fill="{BACKGROUND}"/>',
            f'<g font-family="{FONTS}" font-size="{FONT_SIZE}" fill="{FOREGROUND}" xml:space="preserve">',
            *rows,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _lines(line: str, columns: int) -> Iterator[list[Run]]:
    """Cut a line as a terminal does."""
    cells = list(_cells(line))
    for start in range(0, max(len(cells), 1), columns):
        yield list(_runs(cells[start : start + columns]))


def _cells(line: str) -> Iterator[tuple[str, str]]:
    """Yield each character with its style."""
    style = RESET
    for number, part in enumerate(_STYLE.split(line)):
        if number % 2:
            style = part or RESET
        else:
            yield from ((character, style) for character in part)


def _runs(cells: list[tuple[str, str]]) -> Iterator[Run]:
    start = 0
    for end in range(1, len(cells) + 1):
        if end == len(cells) or cells[end][1] != cells[start][1]:
            text = "".join(character for character, _ in cells[start:end])
            for words in _WORDS.finditer(text):
                yield Run(start + words.start(), words[0], cells[start][1])
            start = end


def _tspan(run: Run) -> str:
    """Place a run by its column, and stretch it to its cells: fonts have other widths for some symbols."""
    x, length = MARGIN + run.column * CELL, len(run.text) * CELL
    look = ' font-weight="bold"' if run.style == BOLD else ""
    look += ' opacity="0.5"' if run.style == DIM else ""
    look += f' fill="{COLOURS[run.style]}"' if run.style in COLOURS else ""
    stretch = f' textLength="{length:g}" lengthAdjust="spacingAndGlyphs"' if len(run.text) > 1 else ""
    return f'<tspan x="{x:g}"{stretch}{look}>{escape(run.text)}</tspan>'
