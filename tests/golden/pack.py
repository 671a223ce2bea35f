"""Makes golden.tar.xz from a folder of cases: ``python -m tests.golden.pack FOLDER``.

The same folder always gives the same tar: members in a fixed order, no owners, no times. Files of the same
name are adjacent, so that the damaged cases, which repeat one directory, compress to almost nothing.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from pathlib import Path

from tests.golden.cases import ARCHIVE

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 << 20}]


def packed(folder: Path) -> bytes:
    """Pack all files of all cases (folders with a case.json) as one tar."""
    cases = [path.parent for path in folder.glob("*/case.json")]
    files = [path for case in cases for path in case.rglob("*") if path.is_file()]
    files.sort(key=lambda path: (path.suffix, path.name, path.as_posix()))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in files:
            content = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


if __name__ == "__main__":
    ARCHIVE.write_bytes(lzma.compress(packed(Path(sys.argv[1])), check=lzma.CHECK_SHA256, filters=FILTERS))
