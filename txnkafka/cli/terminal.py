"""The terminal: its width, colours and characters, and the status line that other output clears first."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TextIO

import click

from txnkafka.cli.table import beginning, width_of

COLOURS = {
    "error": "red",
    "warning": "yellow",
    "note": "cyan",
    "NOT_STUCK": "green",
    "OPEN_WITHIN_TIMEOUT": "cyan",
    "HW_BEHIND": "cyan",
    "OPEN_OVERDUE": "red",
    "MARKER_PENDING": "red",
    "COMPLETED_WITHOUT_MARKER": "red",
    "UNKNOWN_LOG_CUT_SHORT": "yellow",
    "UNKNOWN_NO_COORDINATOR_DATA": "yellow",
    "HANGING_NO_TRANSACTIONAL_ID": "red",
    "HANGING_PARTITION_NOT_IN_TXN": "red",
    "HANGING_EPOCH_MISMATCH": "red",
    "Ongoing": "yellow",
    "PrepareCommit": "yellow",
    "PrepareAbort": "yellow",
    "hanging": "red",
    "open": "cyan",
    "missing": "red",
    "undecided": "red",
    "aborted": "magenta",
    "committed": "green",
}  # severities, verdicts, states of transactions, states of the cells of a strip


def columns_of(stream: TextIO) -> int | None:
    """Return the width of a terminal in columns; None when ``stream`` is a file or a pipe."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def coloured(text: str, word: str | None = None, *, stream: TextIO | None = None) -> str:
    """Return ``text`` in the colour of ``word`` (default: ``text`` itself); unchanged if the output is not a
    terminal, or with NO_COLOR (https://no-color.org)."""
    colour = COLOURS.get(text if word is None else word)
    if colour is None or not _has_colours(sys.stdout if stream is None else stream):
        return text
    return click.style(text, fg=colour)


def dim(text: str) -> str:
    """Return ``text`` dimmed, for dark and light terminals."""
    return click.style(text, dim=True) if _has_colours(sys.stdout) else text


def bold(text: str) -> str:
    """Return ``text`` for the head of a table."""
    return click.style(text, bold=True) if _has_colours(sys.stdout) else text


def _has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_show(text: str) -> bool:
    """Return True if the encoding of stdout has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


class StatusLine:
    """A line at the bottom of the terminal (stderr), overwritten in place, possibly by another thread."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._length = 0

    def show(self, text: str) -> None:
        """Overwrite the line, cut to the terminal's width."""
        with self._lock:
            text = beginning(text, shutil.get_terminal_size().columns - 1)
            length = width_of(text)
            sys.stderr.write(f"\r{text}{' ' * (self._length - length)}")
            sys.stderr.flush()
            self._length = length

    @contextmanager
    def cleared(self) -> Iterator[bool]:
        """Clear the line, and block updates within the with block. Yields True if a line was shown: flush the
        output then, before the next update."""
        with self._lock:
            was_shown = self._length > 0
            if was_shown:
                sys.stderr.write(f"\r{'':{self._length}}\r")
                sys.stderr.flush()
                self._length = 0
            yield was_shown


status_line = StatusLine()
