"""Prints data on stdout, and everything else on stderr.

Output is UTF-8 regardless of the locale. Names that are not valid Unicode (directory names are arbitrary
bytes) are printed with backslashes; in JSON each byte that is no UTF-8 is the text ``\\xff``, whose backslash
JSON doubles. rich is loaded only for a table on a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from txnkafka.shown import COMMANDS, plain_name, printable

if TYPE_CHECKING:
    from txnkafka.logdir import Finding

__all__ = ["FORMATS", "Messages", "json_text", "printable", "write_json", "write_table", "write_text"]

FORMATS = ("text", "wide", "json", "jsonl")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_text(value: object) -> str:
    """Return ``value`` as JSON in one line for any parser: without lone surrogates, and with C1 controls and
    bidirectional controls escaped."""
    text = _encoder.encode(value)
    return text if text.isascii() else COMMANDS.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    name = plain_name(character)
    return f"\\u{ord(character):04x}" if name == character else f"\\{name}"


def write_text(text: str) -> None:
    """Write a line of text to stdout."""
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))


def write_json(value: object) -> None:
    """Write a line of JSON to stdout: a whole document, or one of many lines."""
    write_text(json_text(value))


def write_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table to stdout; numbers are aligned to the right. None is shown as ``-``."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [bool(cells) and all(_is_numeric(row[i]) for row in cells) for i in range(len(names))]
    if sys.stdout.isatty():
        _write_rich(names, cells, right)
        return
    widths = [max(len(name), *(len(row[i]) for row in cells), 0) for i, name in enumerate(names)]
    for row in [list(names), *cells]:
        padded = (
            cell.rjust(width) if align else cell.ljust(width)
            for cell, width, align in zip(row, widths, right, strict=True)
        )
        write_text("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return printable(str(value))


def _is_numeric(cell: str) -> bool:
    return cell == "-" or cell[:1].isdigit() or (cell[:1] == "-" and cell[1:].isdigit())


def _write_rich(names: Sequence[str], cells: list[list[str]], right: list[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, align in zip(names, right, strict=True):
        table.add_column(name, justify="right" if align else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    sys.stdout.flush()
    Console(file=sys.stdout).print(table)


class Messages:
    """Writes notes and errors to stderr, a line each. ``verbosity``: -1 errors only, 0 notes too, 1 details
    too."""

    def __init__(self, verbosity: int = 0) -> None:
        self.verbosity = verbosity

    def error(self, text: str) -> None:
        """Report a failure, or a fault in the data."""
        self._write("error", text)

    def warning(self, text: str) -> None:
        """Report a problem that changed no answer."""
        if self.verbosity >= 0:
            self._write("warning", text)

    def note(self, text: str) -> None:
        """Report a fact that the user should know to interpret the answer."""
        if self.verbosity >= 0:
            self._write("note", text)

    def detail(self, text: str) -> None:
        """Report a detail; only shown with -v."""
        if self.verbosity >= 1:
            self._write("note", text)

    def finding(self, finding: Finding, subject: str = "") -> None:
        """Report a finding; ``subject`` names its object when it has no file."""
        where = finding.file or subject
        if finding.position is not None:
            where += f" at position {finding.position}"
        text = f"{where}: {finding.message} [{finding.code}]; {finding.remedy}"
        {"error": self.error, "warning": self.warning}.get(finding.severity, self.note)(text)

    def _write(self, kind: str, text: str) -> None:
        # Output on stdout must appear before the messages about it.
        sys.stdout.flush()
        line = printable(" ".join(text.splitlines()))
        sys.stderr.write(f"txnkafka: {kind}: {line}\n")
        sys.stderr.flush()
