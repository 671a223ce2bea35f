"""Compares text with a checked-in file, or rewrites the file with ``TXNKAFKA_REWRITE=1``."""

from __future__ import annotations

import os
from pathlib import Path

REWRITE = os.environ.get("TXNKAFKA_REWRITE", "0") not in ("", "0")
HINT = "TXNKAFKA_REWRITE=1 rewrites it; review the difference"


def same_text(path: Path, text: str) -> None:
    """Assert that the file contains the text."""
    if REWRITE:
        path.write_text(text, encoding="utf-8")
    there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    assert there == text.splitlines(), HINT


def same_block(path: Path, name: str, text: str) -> None:
    """Assert that the fenced block of a page after the line ``<!-- name -->`` contains the text."""
    page = path.read_text(encoding="utf-8")
    before, found, behind = page.partition(f"<!-- {name} -->\n```")
    assert found, f"{path.name} has no block {name!r}"
    language, _, rest = behind.partition("\n")
    block, _, after = rest.partition("```\n")
    if REWRITE:
        path.write_text(f"{before}{found}{language}\n{text}```\n{after}", encoding="utf-8")
        block = text
    assert block.splitlines() == text.splitlines(), HINT
