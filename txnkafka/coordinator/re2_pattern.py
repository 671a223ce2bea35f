"""``Re2Pattern``: patterns for topics and transactional ids, matched by Google's RE2 in linear time.

Kafka uses RE2/J, a port of RE2 to Java. The package ``google-re2`` is imported with the first pattern only.
"""

from __future__ import annotations

from typing import Final

MOST_CHARACTERS: Final = 1_000
_MEMORY: Final = 256 << 10
"""Bytes for the program of a pattern and its automaton. google-re2 keeps the last 128 patterns. A step of
``Re2Pattern.steps`` takes at most about 5 ns, also when the automaton does not fit."""


class PatternError(ValueError):
    """Raised for an invalid pattern, and for one whose matches take too long."""


class Re2Pattern:
    """A compiled pattern. Raises PatternError for text that is not a pattern, or too large."""

    def __init__(self, text: str) -> None:
        import re2

        if len(text) > MOST_CHARACTERS:
            raise PatternError(f"a pattern has at most {MOST_CHARACTERS} characters")
        options = re2.Options()
        options.max_mem, options.log_errors, options.never_capture = _MEMORY, False, True
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            raise PatternError(_message(error)) from None

    def steps(self, text: str) -> int:
        """Return the cost of a match with ``text``: states of the pattern times characters."""
        size: int = self._compiled.programsize
        return size * (len(text) + 1)

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        return self._compiled.fullmatch(text.encode()) is not None  # faster than a str


def _message(error: Exception) -> str:
    (reason,) = error.args
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
