"""Habits that make English hard to read, counted in pages, docstrings and comments.

A hit is a place to look at, not a verdict. ``tests/test_prose.py`` limits the number of hits per 1,000 words,
so that it cannot rise.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePath

__all__ = ["HABITS", "habits", "prose", "words"]

HABITS = {
    "a pronoun with a genitive: repeat the noun": re.compile(r"\b(?:those|that|one) of (?:a|an|the|its)\b"),
    "nobody, somebody, whoever: name the client, caller or operator": re.compile(
        r"\b(?:nobody|somebody|whoever|anybody|everybody)\b", re.I
    ),
    "a relative clause instead of a noun": re.compile(
        r"\b(?:what (?:is|was|has|there|became|it|they)|who (?:has|was|is))\b"
    ),
    "there is: say exists, is missing, or what acts": re.compile(r"\bthere (?:is|are|was|were)\b", re.I),
    "a human verb for a program": re.compile(r"\b(?:says so|is told|hears? of|gives up|takes? part)\b"),
    "space for time or order: write before or after": re.compile(
        r"\b(?:behind|in front of) (?:it|them|the|each|that)\b"
    ),
    "a closing 'too'": re.compile(r", too[.,;:)]"),
    "a docstring that begins with a relative clause": re.compile(r"^(?:Whether|What|Why|Where|Who|How)\b"),
}
_CODE = re.compile(r"^```.*?^```|^ {4}.*?$|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)


def prose(path: PurePath, text: str) -> Iterator[str]:
    """Yield what a reader reads: a page without its code; the docstrings and comments of a module."""
    if path.suffix == ".md":
        yield _CODE.sub(" ", text)
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield _CODE.sub(" ", ast.get_docstring(node) or "")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.string.lstrip("# ")


def habits(path: PurePath, text: str) -> Iterator[str]:
    """Yield the name of the habit for each hit."""
    for passage in prose(path, text):
        for name, pattern in HABITS.items():
            yield from (name for _ in pattern.finditer(passage))


def words(path: PurePath, text: str) -> int:
    """Return the number of words of the prose."""
    return sum(len(passage.split()) for passage in prose(path, text))
