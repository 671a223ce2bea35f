"""The examples of a page: blocks of Python, each followed by a block with its output."""

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
    """A block of Python, and the output that the page shows; empty if it shows none."""

    source: str
    printed: str

    def run(self, names: dict[str, object]) -> str:
        """Run it with and into ``names``; return its output."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(self.source, names)
        return output.getvalue()


def examples(page: str) -> list[Example]:
    """Return the examples of a page, by its path in the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [Example(source, printed or "") for source, printed in _BLOCK.findall(text)]
    assert len(found) == text.count("```python")
    return found
