"""A finding: something about a file that a person should know."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """What was found, where, how bad it is, and what to do.

    ``severity`` is ``error`` (records are lost, hidden or wrong, or a broker would make them so), ``warning``
    (a derived file or the tail is not as it should be; what the log holds is still read right) or ``note``.
    ``code`` is one of the names in docs/findings.md.
    """

    file: str
    position: int | None
    severity: str
    code: str
    message: str
    remedy: str
