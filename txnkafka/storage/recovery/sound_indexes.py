"""Compares a segment's index files with indexes rebuilt from its log. They may be sound without being equal:
a restarted broker counts the bytes between entries from its start on, and older brokers choose other entries.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptFileError
from txnkafka.model import NO_TIMESTAMP
from txnkafka.storage.formats.index import OffsetIndex, TimeIndex
from txnkafka.storage.formats.limits import INDEX_LIMIT

if TYPE_CHECKING:
    from txnkafka.storage.formats.layout import FileKind
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.recovery.found_log import FoundLog


def keep_sound_indexes(log: FoundLog, segment: LogSegment) -> None:
    """Keep the index files that match the log, and record a repair for the others, which are replaced by the
    rebuilt indexes in memory. Raises OSError."""
    last_offsets: dict[int, int] = {}
    largest = array("q", [NO_TIMESTAMP])  # by batch, cumulative; the first element is before all batches
    end_offset = segment.base_offset
    for batches in segment.windows():
        last_offsets.update(zip(batches.position, batches.last_offset, strict=True))
        largest.extend(list(accumulate(batches.max_timestamp, max, initial=largest[-1]))[1:])
        end_offset = batches.last_offset[-1] + 1 if len(batches) else end_offset
    segment.seal()
    _keep_offset_index(log, segment, last_offsets, end_offset)
    _keep_time_index(log, segment, end_offset, list(last_offsets.values()), largest[1:])


def _keep_offset_index(
    log: FoundLog, segment: LogSegment, last_offsets: dict[int, int], end_offset: int
) -> None:
    path = segment.path("index")
    content = _content(log, segment, "index")
    if content is None:
        return
    problems = OffsetIndex(content, segment.base_offset).problems(
        segment.size, end_offset=end_offset, last_offsets=last_offsets
    )
    if problems:
        log.note(path, "rebuilt from the log", f"it is damaged, {problems[0].text}")
    else:
        segment.offset_index = OffsetIndex.owned(segment.base_offset, content)


def _keep_time_index(
    log: FoundLog, segment: LogSegment, end_offset: int, last_offsets: list[int], largest: Sequence[int]
) -> None:
    """Keep or replace the time index. ``last_offsets`` has the last offset of each batch, ``largest`` the
    largest timestamp up to it; an entry pairs that timestamp with an offset of the batch."""
    path = segment.path("timeindex")
    content = _content(log, segment, "timeindex")
    if content is None:
        return
    problems = TimeIndex(content, segment.base_offset).problems(end_offset=end_offset)
    index = TimeIndex.owned(segment.base_offset, content)
    if problems:
        log.note(path, "rebuilt from the log", f"it is damaged, {problems[0].text}")
    elif _last_timestamp(index) != _last_timestamp(segment.time_index):  # older brokers store other offsets
        log.note(path, "rebuilt from the log", "it does not end with the newest timestamp")
    elif wrong := [at for at in index if largest[bisect_left(last_offsets, at.offset)] != at.timestamp]:
        text = f"{wrong[0].timestamp} is not the largest timestamp up to offset {wrong[0].offset}"
        log.note(path, "rebuilt from the log", f"it is damaged, {text}")
    else:
        segment.time_index = index


def _content(log: FoundLog, segment: LogSegment, kind: FileKind) -> bytes | None:
    """Return the content of an index file; None, after recording a repair, if it is unusable. Raises
    OSError."""
    path = segment.path(kind)
    if not segment.files.exists(kind):
        log.note(path, "rebuilt from the log", "it is not there")
        return None
    try:
        return segment.files.read(kind, INDEX_LIMIT)
    except CorruptFileError as error:
        log.note(path, "rebuilt from the log", f"it is damaged, {error.reason}")
        return None


def _last_timestamp(index: TimeIndex) -> int | None:
    last = index.last()
    return None if last is None else last[0]
