"""Finds and hides the password in an address such as ``https://user:password@host``."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"(?<=://)([^/?#:@]*):([^/?#]*)@")


def without_password(address: str) -> str:
    """Return an address with its password replaced by ``***``, safe for messages."""
    return _PASSWORD.sub(r"\1:***@", address, count=1)


def password_of(address: str) -> str:
    """Return the password in an address, or an empty string."""
    found = _PASSWORD.search(address)
    return found[2] if found else ""
