"""Finds code by the qualified name of its definition and by its tokens.

White space, line breaks and comments do not count, and neither does the file: a patch fits as long as the
definition keeps its name and the old code stays in it, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["Place", "definitions", "occurrences", "places", "replaced"]

SOURCES = (".py", ".pyx", ".pxd")
_LONG = r'[rbfuRBFU]{0,2}(?:"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\')'
_SHORT = r'[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
_STRING = f"{_LONG}|{_SHORT}"
_OPEN = re.compile(rf"{_LONG}|(?P<open>[rbfuRBFU]{{0,2}}(?:\"{{3}}|'{{3}}))|{_SHORT}|#[^\n]*", re.S)
_PYTHON = re.compile(rf"\s+|#[^\n]*|\\\n|(?P<token>{_STRING}|\w+|\S)", re.S)
_C = re.compile(rf"\s+|//[^\n]*|/\*.*?\*/|(?P<token>{_STRING}|\w+|\S)", re.S)
_DEFINITION = re.compile(
    r"(?P<indent>[ ]*)(?:(?:async )?def |(?:cdef )?class |cp?def [\w.\[\], *]*?)(?P<name>\w+)(?=[\[(:])"
)
_ASSIGNED = re.compile(r"(?P<indent>)(?P<name>\w+)(?:: [^=]+)? = ")
_CLOSING = (")", "]", "}")


class Token(NamedTuple):
    """The text of a token and its position in the source."""

    text: str
    start: int
    end: int


class Place(NamedTuple):
    """Characters ``start`` to ``end`` of a file."""

    path: Path
    start: int
    end: int


def places(package: Path, scope: str, old: str) -> list[Place]:
    """Return where ``old`` occurs in the definitions named ``scope``. A scope with a slash is a file below
    the directory that contains ``package``."""
    if "/" in scope:
        path = package.parent / scope
        return _within(path, 0, None, old) if path.is_file() else []
    name, found = scope.rpartition(".")[2], []
    for path in _sources(package):
        text = _text(path, path.stat().st_mtime_ns)
        for start, end in definitions(text).get(scope, ()) if name in text else ():
            found += _within(path, start, end, old)
    return found


def _sources(package: Path) -> list[Path]:
    return sorted(path for path in package.rglob("*") if path.suffix in SOURCES)


@cache
def _text(path: Path, changed_ns: int) -> str:
    return path.read_text(encoding="utf-8")


def _within(path: Path, start: int, end: int | None, old: str) -> list[Place]:
    text = path.read_text(encoding="utf-8")
    found = occurrences(text[start:end], old, is_c=path.suffix == ".h")
    return [Place(path, start + first, start + last) for first, last in found]


def occurrences(text: str, old: str, *, is_c: bool = False) -> list[tuple[int, int]]:
    """Return start and end of each place of ``text`` that has the tokens of ``old``."""
    tokens, wanted = list(_tokens(text, is_c=is_c)), [token.text for token in _tokens(old, is_c=is_c)]
    texts, size = [token.text for token in tokens], len(wanted)
    if not size:
        return []
    firsts = (at for at, each in enumerate(texts) if each == wanted[0] and texts[at : at + size] == wanted)
    return [(tokens[at].start, tokens[at + size - 1].end) for at in firsts]


def _tokens(text: str, *, is_c: bool) -> Iterator[Token]:
    for match in (_C if is_c else _PYTHON).finditer(text):
        if match["token"]:
            yield Token(match["token"], match.start(), match.end())


@cache
def definitions(text: str) -> dict[str, list[tuple[int, int]]]:
    """Return the places of the classes, functions and module variables of a source, by qualified name."""
    found: dict[str, list[tuple[int, int]]] = {}
    open_ones: list[tuple[int, str, int]] = []  # indentation, qualified name, start

    def close(indent: int, end: int) -> None:
        while open_ones and open_ones[-1][0] >= indent:
            _, name, start = open_ones.pop()
            found.setdefault(name, []).append((start, end))

    position = 0
    decorator: tuple[int, int] | None = None  # indentation and start of the first one
    for line in _logical_lines(text):
        stripped = line.lstrip()
        if stripped and not stripped.startswith(("#", *_CLOSING)):
            indent = len(line) - len(stripped)
            close(indent, position)
            match = _DEFINITION.match(line) or _ASSIGNED.match(line)
            if stripped.startswith("@"):
                decorator = decorator or (indent, position)
            elif match:
                name = f"{open_ones[-1][1]}.{match['name']}" if open_ones else match["name"]
                open_ones.append((indent, name, decorator[1] if decorator else position))
                decorator = None
            elif decorator and indent <= decorator[0]:
                decorator = None
        position += len(line)
    close(0, len(text))
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines with their ends; the lines of a string in triple quotes stay together."""
    held = ""
    for line in text.splitlines(keepends=True):
        held += line
        if _is_whole(held):
            yield held
            held = ""
    if held:
        yield held


def _is_whole(text: str) -> bool:
    return not any(match["open"] for match in _OPEN.finditer(text))


def replaced(text: str, start: int, end: int, old: str, new: str) -> str:
    """Return ``text`` with ``new`` instead of the characters from ``start`` to ``end``, which have the tokens
    of ``old``. Code that begins its line is indented like the line."""
    line = text.rfind("\n", 0, start) + 1
    indent = text[line:start]
    if indent.strip():
        return text[:start] + new.strip() + text[end:]
    indent = indent[: len(indent) - _indentation(old)]
    lines = "".join(indent + each if each.strip() else each for each in new.splitlines(keepends=True))
    if lines.strip():
        return text[:line] + lines.rstrip("\n") + text[end:]
    return text[:line] + text[end:].partition("\n")[2]


def _indentation(code: str) -> int:
    return len(code) - len(code.lstrip(" "))
