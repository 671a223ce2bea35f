"""Reads schema files."""

from __future__ import annotations

from txnkafka.env import open_file_system
from txnkafka.errors import LogDirError

LIMIT = 16 << 20


def read_schema_file(path: str) -> bytes:
    """Return the content of a local file or an address. Raises LogDirError."""
    files, (name,) = open_file_system([path])
    try:
        return files.read(name, LIMIT)
    except OSError as error:
        raise LogDirError(f"the schema {name} cannot be read: {error.strerror or error}") from None
