"""Files of our own, which nobody else reads before they are whole."""

from __future__ import annotations

import os
import tempfile

__all__ = ["write_file"]


def write_file(path: str, content: bytes) -> None:
    """Make ``path`` a file with this content, in one step. Raises OSError."""
    directory, name = os.path.split(path)
    descriptor, beside = tempfile.mkstemp(prefix=f".{name}.", dir=directory or ".")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
