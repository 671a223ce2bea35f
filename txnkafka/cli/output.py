"""Prints data on stdout, all other messages on stderr.

Output is UTF-8 regardless of the locale. Names that are not valid Unicode (directory names are arbitrary
bytes) are printed with backslashes; in JSON a byte that is not UTF-8 becomes the text ``\\xff``, whose
backslash JSON doubles. Only a terminal gets colours and lines wrapped at its width; in a pipe a line stays
one line.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from txnkafka.cli.table import Fitted, aligned, fitted
from txnkafka.cli.table import Layout as Layout
from txnkafka.cli.terminal import bold, can_show, coloured, columns_of, status_line
from txnkafka.shown import COMMANDS, plain_name
from txnkafka.shown import printable as printable

if TYPE_CHECKING:
    from txnkafka.logdir import Finding

FORMATS = ("text", "wide", "json", "jsonl")
AS_IT_IS = Layout()
NO_PARTS: Mapping[str, str] = {}
NO_BREAK = "\N{NO-BREAK SPACE}"  # in a paragraph: never broken into two lines
COLOURED_COLUMNS = ("verdict", "transaction", "state", "TransactionState")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_text(value: object) -> str:
    """Return ``value`` as JSON in one line for any parser: without lone surrogates, and with DEL, C1 controls
    and bidirectional controls escaped."""
    text = _encoder.encode(value)
    return text if text.isascii() and "\x7f" not in text else COMMANDS.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    name = plain_name(character)
    return f"\\u{ord(character):04x}" if name == character else f"\\{name}"


def write_text(text: str) -> None:
    """Write a line of text to stdout."""
    with status_line.cleared() as is_live:
        sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
        if is_live:
            sys.stdout.flush()


def write_json(value: object) -> None:
    """Write a JSON value to stdout as one line: a whole document, or a line of JSON Lines."""
    write_text(json_text(value))


def write_paragraph(text: str, word: str | None = None, *, parts: Mapping[str, str] = NO_PARTS) -> None:
    """Write a line of text, wrapped at the width of a terminal. ``word`` is the coloured part; ``parts`` maps
    more parts without ordinary spaces to the words whose colours they get."""
    for line in _wrapped(text, columns_of(sys.stdout)):
        for part, colour in parts.items():
            line = line.replace(part, coloured(part, colour))
        line = line.replace(NO_BREAK, " ")
        if word is not None and word in line:
            line, word = line.replace(word, coloured(word), 1), None
        write_text(line)


def _wrapped(text: str, width: int | None) -> list[str]:
    """Wrap ``text`` between words; continuation lines are indented by two more."""
    if width is None or len(text) <= width:
        return [text]
    from textwrap import wrap

    indent = text[: len(text) - len(text.lstrip())]
    return wrap(
        text.lstrip(), width, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def finding_text(finding: Finding) -> str:
    """Return a finding as a sentence."""
    where = printable(finding.file)
    if finding.position is not None:
        where += f" at position {finding.position}"
    message = " ".join(finding.message.splitlines())
    return printable(f"{where}: {message} [{finding.code}]; {finding.remedy}")


def write_finding(finding: Finding) -> None:
    """Write a finding to stdout, for commands whose output is findings."""
    indent = "  " if finding.cause else ""
    write_paragraph(f"{indent}{finding.severity}: {finding_text(finding)}", finding.severity)


def write_table(names: Sequence[str], rows: Iterable[Sequence[object]], layout: Layout = AS_IT_IS) -> None:
    """Write a table to stdout, fitted to a terminal; numbers are aligned to the right. None is shown as
    ``-``."""
    cells = [[_cell(value) for value in row] for row in rows]
    table = fitted(names, cells, layout, columns_of(sys.stdout))
    if table.widths is None:
        _write_blocks(table)
        return
    for number, row in enumerate(aligned(table)):
        text = "  ".join(_coloured_cells(table.names, row) if number else row).rstrip()
        write_text(_showable(text) if number else bold(text))
    if table.dropped:
        write_paragraph(f"not shown, as the terminal is too narrow: {', '.join(table.dropped)}")


def _coloured_cells(names: Sequence[str], row: list[str]) -> list[str]:
    return [
        cell.replace(cell.strip(), coloured(cell.strip())) if name in COLOURED_COLUMNS else cell
        for name, cell in zip(names, row, strict=True)
    ]


def _write_blocks(table: Fitted) -> None:
    """Write a line per field of each row, and an empty line after each row."""
    for row in table.rows:
        for name, cell in zip(table.names, row, strict=True):
            write_paragraph(f"{name}: {cell}".rstrip(), cell if name in COLOURED_COLUMNS else None)
        write_text("")


def _showable(text: str) -> str:
    ellipsis_ = "\N{HORIZONTAL ELLIPSIS}"
    return text if ellipsis_ not in text or can_show(ellipsis_) else text.replace(ellipsis_, "~")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return printable(str(value))


def nowhere() -> TextIO:
    """Return a stream that discards its input."""
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


class Messages:
    """Writes notes and errors to stderr, a line each. ``verbosity``: -1 errors only, 0 adds notes, 1 adds
    details."""

    def __init__(self, verbosity: int = 0) -> None:
        self.verbosity = verbosity

    def error(self, text: str) -> None:
        """Report a failure, or a fault in the data."""
        self._write("error", text)

    def warning(self, text: str) -> None:
        """Report a problem that did not change the output."""
        if self.verbosity >= 0:
            self._write("warning", text)

    def note(self, text: str) -> None:
        """Report a fact that the user needs to interpret the output."""
        if self.verbosity >= 0:
            self._write("note", text)

    def detail(self, text: str) -> None:
        """Report a detail; only shown with -v."""
        if self.verbosity >= 1:
            self._write("note", text)

    def finding(self, finding: Finding) -> None:
        """Report a finding."""
        write = {"error": self.error, "warning": self.warning}.get(finding.severity, self.note)
        write(finding_text(finding))

    def findings(self, findings: Iterable[Finding]) -> int:
        """Report findings; return the resulting exit status: 1 with an error, else 0."""
        status = 0
        for finding in findings:
            self.finding(finding)
            status = max(status, int(finding.severity == "error"))
        return status

    def _write(self, kind: str, text: str) -> None:
        line = f"txnkafka: {kind}: {printable(' '.join(text.splitlines()))}"
        lines = _wrapped(line, columns_of(sys.stderr))
        lines[0] = lines[0].replace(kind, coloured(kind, stream=sys.stderr), 1)
        with status_line.cleared():
            sys.stdout.flush()  # output must appear before the messages about it
            self.write_lines("".join(f"{each}\n" for each in lines))

    def write_lines(self, text: str) -> None:
        """Write whole lines to stderr."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            # A full disk or a closed pipe for messages does not change the result. The rest of the
            # buffer would be flushed again at exit, and that error would become the exit status.
            sys.stderr = nowhere()
