"""A finding: a fact about a file that a user should know."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """A fact about a file: where it is, how severe it is, and what to do.

    ``severity`` is ``error`` (records are lost, hidden or wrong, or a broker would make them so), ``warning``
    (a derived file or the tail is damaged; the records of the log are still read correctly) or ``note``.
    ``code`` is one of the names in docs/findings.md; ``cause`` is the code of the finding that this one
    follows from, empty for an independent fault.
    """

    file: str
    position: int | None
    severity: str
    code: str
    message: str
    remedy: str
    cause: str = ""
