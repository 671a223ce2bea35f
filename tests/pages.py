"""The examples of a page: blocks of Python, each with the block of text behind it that it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Example", "examples"]

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A block of Python, and what the page says that it prints: nothing where it says nothing."""

    source: str
    printed: str

    def run(self, names: dict[str, object]) -> str:
        """Run it with and into ``names``; returns what it has printed."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(self.source, names)
        return output.getvalue()


def examples(page: str) -> list[Example]:
    """Those of a page, by its path in the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [Example(source, printed or "") for source, printed in _BLOCK.findall(text)]
    assert len(found) == text.count("```python")
    return found
