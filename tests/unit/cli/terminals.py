"""Makes stdout and stderr of a test look like a terminal of some width."""

from __future__ import annotations

import sys

import pytest

__all__ = ["as_terminal"]


def as_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, *, colours: bool = False) -> None:
    """Let the captured streams claim to be a terminal."""
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    if colours:
        monkeypatch.delenv("NO_COLOR", raising=False)
    else:
        monkeypatch.setenv("NO_COLOR", "1")
