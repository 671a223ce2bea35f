"""Makes text safe to display: its control characters must not reach a terminal or break a parser."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["COMMANDS", "plain_name", "printable"]

COMMANDS: Final = re.compile("[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C1 controls, line and paragraph separators, bidirectional controls, and lone surrogates: characters that
JSON does not escape although they are not printable text."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def plain_name(name: str) -> str:
    r"""Return a file name as Unicode: a byte that is not UTF-8 (a surrogate in Python) becomes ``\xff``."""
    return name if name.isascii() else _SURROGATE.sub(_digits, name)


def _digits(match: re.Match[str]) -> str:
    point = ord(match.group())
    return f"\\x{point - 0xDC00:02x}" if 0xDC80 <= point <= 0xDCFF else f"\\u{point:04x}"


def printable(text: str) -> str:
    """Return ``text`` with all characters escaped that a terminal might interpret as a command."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
