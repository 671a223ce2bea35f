"""Draws the strip of a partition as characters: in Unicode, or in ASCII where the output's encoding lacks
it."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from txnkafka.cli.output import NO_BREAK, write_paragraph, write_text
from txnkafka.cli.terminal import can_show, coloured, columns_of
from txnkafka.logdir.strip import State

if TYPE_CHECKING:
    from txnkafka.logdir.strip import Strip

__all__ = ["Legend", "cells_of_width", "write_strip"]

INDENT = "  "
PIPED_COLUMNS = 80
UNICODE = dict(zip(State, "?\N{WHITE CIRCLE}!~\N{MIDDLE DOT}\N{MULTIPLICATION SIGN}"
                   "\N{BLACK SQUARE}|\N{LIGHT SHADE}", strict=True))  # fmt: skip
ASCII = dict(zip(State, "?o!~.x#|_", strict=True))
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


def write_strip(strip: Strip) -> None:
    """Write the strip, and under it where the last stable offset is."""
    symbols = _symbols()
    runs = ((state, len(list(run))) for state, run in groupby(cell.state for cell in strip.cells))
    write_text(INDENT + "".join(coloured(symbols[state] * count, state.value) for state, count in runs))
    write_text(_pointer(strip))


def _pointer(strip: Strip) -> str:
    """Return the line below: an arrow at the last stable offset, which begins a cell, with its name."""
    label = f"LSO {strip.last_stable_offset}"
    if strip.stable > len(strip.cells) // 2 and strip.stable > len(label):
        return f"{INDENT}{label + ' ^':>{strip.stable + 1}}"
    return f"{INDENT}{'':{strip.stable}}^ {label}"


class Legend:
    """Says what the symbols so far mean, again where one is new: which of them a cell shows depends on all
    that are before it."""

    def __init__(self) -> None:
        self._explained: set[State] = set()
        self._seen: set[State] = set()

    def add(self, strip: Strip) -> None:
        """Note the symbols of a strip that was written."""
        self._seen |= {cell.state for cell in strip.cells}

    def write(self) -> None:
        """Write the meaning of the symbols, unless all are explained."""
        if self._seen == self._explained:
            return
        symbols = _symbols()
        words = ", ".join(
            f"{symbols[state]}{NO_BREAK}{word}" for state, word in WORDS.items() if state in self._seen
        )
        write_paragraph(f"{INDENT}A cell shows the first of these that is in it: {words}.")
        if not self._explained:
            write_paragraph(f"{INDENT}^ LSO is the last stable offset, where a read_committed reader stops.")
        self._explained = set(self._seen)
