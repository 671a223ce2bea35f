"""Hints for errors about an unknown topic or partition."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

__all__ = ["what_there_is"]

LISTED = 10


def what_there_is(kind: str, names: Sequence[str], wanted: str) -> str:
    """Return names similar to ``wanted`` as a question, else the first of the existing names."""
    lower = {name.lower(): name for name in reversed(names)}
    near = get_close_matches(wanted.lower(), lower, n=3, cutoff=0.7)
    if near and kind == "topics":
        return f"did you mean {' or '.join(lower[name] for name in near)}?"
    if not names:
        return f"there are no {kind}"
    more = f" and {len(names) - LISTED:,} more, which 'txnkafka ls' lists" if len(names) > LISTED else ""
    return f"there are the {kind} {', '.join(names[:LISTED])}{more}"
