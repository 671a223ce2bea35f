"""Draws the strip of a partition as characters: in Unicode, or in ASCII if the output's encoding lacks the
symbols."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from txnkafka.cli.output import NO_BREAK, write_paragraph, write_text
from txnkafka.cli.terminal import can_show, coloured, columns_of, dim
from txnkafka.logdir.strip import State
from txnkafka.shown import offset_range

if TYPE_CHECKING:
    from txnkafka.logdir.strip import Strip

INDENT = "  "
PIPED_COLUMNS = 80
UNICODE = dict(zip(State, "?\N{WHITE CIRCLE}!~\N{MEDIUM SHADE}\N{MULTIPLICATION SIGN}"
                   "\N{BLACK SQUARE}|_", strict=True))  # fmt: skip
ASCII = dict(zip(State, "?o!~%x#|_", strict=True))
WORDS = {
    State.HANGING: "hanging",
    State.OPEN: "open",
    State.MISSING: "missing or damaged",
    State.UNDECIDED: "end marker missing",
    State.HELD_BACK: "held back",
    State.ABORTED: "aborted",
    State.COMMITTED: "committed or not transactional",
    State.MARKER: "marker",
    State.COMPACTED: "compacted away",
}


def cells_of_width() -> int:
    """Return the number of cells that fit into a line of the terminal."""
    return max((columns_of(sys.stdout) or PIPED_COLUMNS) - 2 * len(INDENT), 10)


def _symbols() -> dict[State, str]:
    return UNICODE if can_show("".join(UNICODE.values())) else ASCII


def extent(strip: Strip) -> str:
    """Return the range of offsets in a strip, and the offsets per cell."""
    count = strip.end_offset - strip.start_offset
    if not count:
        return f"empty, the next offset is {strip.end_offset}"
    offsets = offset_range(strip.start_offset, strip.end_offset - 1)
    most = -(-count // len(strip.cells))
    return f"{offsets}, {'an offset' if most == 1 else f'up to {most:,} offsets'} a cell"


def write_strip(strip: Strip) -> None:
    """Write the strip, with an arrow below it at the last stable offset. Markers after that offset are dim,
    so that open transactions and the records held back by them stand out."""
    symbols = _symbols()
    cells = ((cell.state, i >= strip.stable) for i, cell in enumerate(strip.cells))
    line = INDENT
    for (state, is_unstable), run in groupby(cells):
        text = symbols[state] * len(list(run))
        line += dim(text) if is_unstable and state is State.MARKER else coloured(text, state.value)
    write_text(line)
    write_text(_pointer(strip))


def _pointer(strip: Strip) -> str:
    """Return the line below: an arrow at the last stable offset, which begins a cell, with its name."""
    label = f"LSO {strip.last_stable_offset}"
    if strip.stable > len(strip.cells) // 2 and strip.stable > len(label):
        return f"{INDENT}{label + ' ^':>{strip.stable + 1}}"
    return f"{INDENT}{'':{strip.stable}}^ {label}"


class Legend:
    """Explains the symbols written so far, all again for a new symbol, because the legend also gives their
    order of precedence."""

    def __init__(self) -> None:
        self._explained: set[State] = set()
        self._seen: set[State] = set()

    def add(self, strip: Strip) -> None:
        """Record the symbols of a written strip."""
        self._seen |= {cell.state for cell in strip.cells}

    def write(self) -> None:
        """Write the meaning of the symbols, unless all were explained before."""
        if self._seen == self._explained:
            return
        symbols = _symbols()
        parts = {
            f"{symbols[state]}{NO_BREAK}{word.replace(' ', NO_BREAK)}": state.value
            for state, word in WORDS.items() if state in self._seen
        }  # fmt: skip
        text = f"{INDENT}A cell shows the worst state in it, in this order: {', '.join(parts)}."
        write_paragraph(text, parts=parts)
        if not self._explained:
            write_paragraph(f"{INDENT}^ LSO is the last stable offset, where a read_committed reader stops.")
        self._explained = set(self._seen)
