"""Reads the two sparse indexes of a segment from their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.index import OffsetIndex, TimeIndex
from txnkafka.storage.formats.limits import INDEX_LIMIT

if TYPE_CHECKING:
    from txnkafka.storage.formats.layout import FileKind
    from txnkafka.storage.log.segment_files import SegmentFiles

SPARSE: tuple[FileKind, ...] = ("index", "timeindex")


def read_indexes(files: SegmentFiles, base_offset: int, size: int) -> tuple[OffsetIndex, TimeIndex] | str:
    """Read both indexes of a segment with ``size`` bytes of log; return the fault as text if the files are
    unusable. Does not keep the files open: a log may have many. Raises OSError."""
    for kind in SPARSE:
        if not files.exists(kind):
            return f"{files.path(kind)} is not there"
    try:
        offset_index = OffsetIndex.owned(base_offset, files.read("index", INDEX_LIMIT))
        time_index = TimeIndex.owned(base_offset, files.read("timeindex", INDEX_LIMIT))
    except CorruptFileError as error:
        return f"{error.file} is damaged, {error.reason}"
    for kind, problems in (("index", offset_index.problems(size)), ("timeindex", time_index.problems())):
        if problems:
            return f"{files.path(kind)} is damaged, {problems[0].text}"
    return offset_index, time_index
