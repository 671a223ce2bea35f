"""Makes an archive from a folder of cases: ``python -m tests.golden.pack FOLDER ARCHIVE``.

The same folder always gives the same tar: members in a fixed order, no owners, no times. Files of the same
name are adjacent, so that the damaged cases, which repeat one directory, compress to almost nothing.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["pack", "packed"]

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 << 20}]


def packed(folder: Path, names: Iterable[str]) -> bytes:
    """Pack all files of the named cases as one tar."""
    files = [path for name in names for path in (folder / name).rglob("*") if path.is_file()]
    files.sort(key=lambda path: (path.suffix, path.name, path.as_posix()))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in files:
            content = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def pack(folder: Path, archive: Path) -> None:
    """Write the archive of all cases of a folder (its folders with a case.json)."""
    content = packed(folder, [path.parent.name for path in folder.glob("*/case.json")])
    archive.write_bytes(lzma.compress(content, check=lzma.CHECK_SHA256, filters=FILTERS))


if __name__ == "__main__":
    pack(*map(Path, sys.argv[1:]))
