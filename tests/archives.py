"""Unpacking of tar archives on every supported Python: ``extractall(filter=)`` came with 3.11.4."""

from __future__ import annotations

import tarfile
from pathlib import Path

__all__ = ["unpack"]


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract all members of ``archive`` into ``folder``, with Python's ``data`` filter where it exists."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)
