"""Results of decoding keys and values: the content, or the reason for a failure."""

from __future__ import annotations

from base64 import b64encode
from datetime import date, time
from math import isfinite
from typing import Any, NamedTuple


class Decoded(NamedTuple):
    """The content of a key or value, which may itself be text, a number or null."""

    content: Any


class Undecoded(NamedTuple):
    """The bytes of a key or value that could not be decoded, and the reason."""

    content: bytes
    reason: str


def plain(value: object) -> object:
    """Return content in JSON's types: bytes as text or ``{"base64":…}``, times in ISO 8601, other types and
    numbers that JSON lacks as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, dict):
        return {str(name): plain(content) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [plain(content) for content in value]
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}
    return value.isoformat() if isinstance(value, date | time) else str(value)
