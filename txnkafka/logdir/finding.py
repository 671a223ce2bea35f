"""A finding: a fact about a file for the user."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """A fact about a file: its place, severity, message and remedy.

    ``severity`` is ``error`` (records are lost, hidden or wrong, or will be after a broker's start),
    ``warning`` (a derived file or the tail is damaged; the records of the log are still read correctly) or
    ``note``. ``code`` is one of the names in docs/findings.md; ``cause`` is the code of the finding that
    causes this one, empty for an independent fault."""

    file: str
    position: int | None
    severity: str
    code: str
    message: str
    remedy: str
    cause: str = ""
