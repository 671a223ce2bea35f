"""Files of our own, which nobody else reads before they are whole."""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["write_file"]


def write_file(path: str, content: bytes) -> None:
    """Make ``path`` a file with this content, in one step. Raises OSError."""
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(beside, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise
