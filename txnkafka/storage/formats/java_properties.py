"""Parses files in Java's properties format, which Kafka uses for ``meta.properties`` and
``server.properties``.

Source: ``java.util.Properties.load(InputStream)``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# The key, up to the first unescaped separator; the separator; the value, up to a bad \\u.
# Separate expressions: a single one would backtrack through every division of a bad line.
_KEY = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\[^u]|[^\\=: \t\f])*+")
_SEPARATOR = re.compile(r"[ \t\f]*+[=:]?+[ \t\f]*+")
_VALUE = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\[^u]|[^\\])*+")


class Property(NamedTuple):
    """One entry of a file; ``line_number``, from 1, is the line that it begins in."""

    line_number: int
    key: str
    value: str


def parse_properties(data: bytes) -> Iterator[Property]:
    """Yield the entries of a file in order; in Java, the last entry of a repeated key counts. Bytes are ISO
    8859-1. Raises CorruptFileError for a bad unicode escape, with the number of its line."""
    for line_number, text in _logical_lines(data.decode("latin-1")):
        found = _divided(text)
        if found is None:
            raise CorruptFileError(f"line {line_number}: cannot read {text[:80]!r}")
        yield Property(line_number, _unescape(found[0]), _unescape(found[1]))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines joined with their continuation lines, without empty lines and comments, each with the
    number of its first line. After only a backslash, the next line may still be a comment."""
    parts: list[str] = []
    begin = 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        part = raw.lstrip(" \t\f")
        if not parts:
            if not part or part[0] in "#!":
                continue
            begin = number
        if not _continues(part):
            yield begin, "".join([*parts, part])
            parts = []
        elif part != "\\":
            parts.append(part[:-1])
    if parts:
        yield begin, "".join(parts)


def _divided(text: str) -> tuple[str, str] | None:
    """Return key and value, still escaped; None for a line with a bad escape."""
    key_end = _end(_KEY, text, 0)
    value_begin = _end(_SEPARATOR, text, key_end)
    if _end(_VALUE, text, value_begin) < len(text):
        return None
    return text[:key_end], text[value_begin:]


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    match = pattern.match(text, begin)
    assert match is not None  # each expression also matches the empty string
    return match.end()


def _continues(text: str) -> bool:
    """Return True if an odd number of backslashes at the end escapes the line's end."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(character, text)
