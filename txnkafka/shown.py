"""Text for people: names whose control characters must not reach a terminal or break a parser; counts,
times, durations and sizes in units that are read at a glance; hints for names that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

COMMANDS: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""DEL, C1 controls, line and paragraph separators, bidirectional controls, and lone surrogates: characters
that JSON does not escape although they are not printable text."""

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


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 record``, ``3,000 records``; ``plural`` where no ``s`` is added."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def offset_range(first: int, last: int) -> str:
    """Return ``offset 5`` or ``offsets 5 to 7``."""
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_UNITS: Final = ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", _SECOND, "s"))


def duration(milliseconds: int) -> str:
    """Return a duration in its two largest units: ``20 h 13 min``, ``15 min``, ``7.1 s``, ``742 ms``."""
    if milliseconds < 0:
        return f"-{duration(-milliseconds)}"
    for large, large_name, small, small_name in _UNITS:
        if milliseconds >= large:
            rest = milliseconds % large // small
            text = f"{milliseconds // large:,} {large_name}"
            return f"{text} {rest} {small_name}" if rest else text
    if milliseconds >= _SECOND:
        return f"{milliseconds // 100 / 10:g} s"
    return f"{milliseconds} ms"


def size(number: float) -> str:
    """Return a number of bytes in binary units: ``72 B``, ``1.2 GiB``, ``340 MiB``."""
    if number < 1024:
        return f"{number:.4g} B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        number /= 1024
        if number < 1023.5 or unit == "PiB":
            break
    return f"{number:.1f} {unit}" if number < 99.95 else f"{number:,.0f} {unit}"


def iso_time(timestamp_ms: int | None) -> str:
    """Return ISO 8601 in UTC with milliseconds; ``-`` for None, the plain number for times outside the
    calendar."""
    from datetime import datetime, timedelta

    if timestamp_ms is None or timestamp_ms == -1:
        return "-"
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def iso_minute(timestamp_ms: int) -> str:
    """Return ISO 8601 in UTC without seconds, as in ``2026-01-31T12:00Z``."""
    text = iso_time(timestamp_ms)
    return f"{text[:16]}Z" if text.endswith("Z") else text


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint for an error about an unknown name."""
    import difflib

    lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f"did you mean {lower[near[0]]}?" if near else f"there are {', '.join(lower.values())}"
