"""Compares ``.index`` and ``.timeindex`` with the batches of their segment, window by window.

Entries must be correct, but not complete: broker versions index different batches. An entry of ``.index`` has
the position of a batch and an offset at or above the batch's last offset. An entry of ``.timeindex`` has the
largest timestamp so far and an offset of the batch with that timestamp. Neither file has more entries than
batches fit into the log.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

from txnkafka._core.scan import BatchIndex
from txnkafka.logdir.verify.findings import Findings
from txnkafka.record.batch_header import LOG_OVERHEAD, MIN_SIZE_0
from txnkafka.storage.formats import IndexProblem, OffsetIndex, TimeIndex
from txnkafka.storage.formats.index import OFFSET_ENTRY, TIME_ENTRY
from txnkafka.storage.formats.limits import INDEX_LIMIT
from txnkafka.storage.formats.segment_reader import SegmentReader

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_beside(segment: SegmentReader, kind: str, limit: int, findings: Findings) -> bytes | None:
    """Read a file of the segment; None if it does not exist, or if it cannot be read, which adds a
    finding."""
    path = segment.files.get(kind)
    if path is None:
        return None
    try:
        return segment.file_system.read(path, limit)
    except OSError as error:
        findings.add("unreadable-file", path, f"cannot be read: {error.strerror or error}")
        return None


def _compared(
    data: bytes, entry: struct.Struct, count: int, log_size: int, problems: list[IndexProblem]
) -> Iterator[tuple[int, int]]:
    """Return the entries to compare with batches. An index with more entries than batches fit into the log is
    a problem, and none of its entries is compared: the file may be much larger than the log."""
    limit = log_size // (LOG_OVERHEAD + MIN_SIZE_0) + 1
    if count > limit:
        problems.append(IndexProblem(limit, f"{count} entries are more than {log_size} log bytes can have"))
        return iter(())
    return entry.iter_unpack(memoryview(data)[: count * entry.size])


class OffsetIndexCheck:
    """The ``.index`` of one segment."""

    def __init__(self, segment: SegmentReader, findings: Findings) -> None:
        self._path = segment.files.get("index", "")
        self._findings = findings
        data = read_beside(segment, "index", INDEX_LIMIT, findings) or b""
        self._index = OffsetIndex(data, segment.base_offset)
        self._problems: list[IndexProblem] = []
        compared = _compared(data, OFFSET_ENTRY, len(self._index), segment.size, self._problems)
        entries = enumerate(compared)
        # already in order, unless the file is damaged
        self._entries = sorted([(position, relative, number) for number, (relative, position) in entries])
        self._base_offset = segment.base_offset
        self._next = 0

    def window(self, index: BatchIndex) -> None:
        """Compare the entries that point into these batches."""
        end = bisect_left(self._entries, index.end_position, lo=self._next, key=itemgetter(0))
        entries = self._entries[self._next : end]
        if not entries:
            return
        self._next = end
        positions, relative_offsets, numbers = zip(*entries, strict=True)
        offsets = [self._base_offset + relative for relative in relative_offsets]
        last_offsets = dict(zip(index.position, index.last_offset, strict=True))
        found = list(map(last_offsets.get, positions))
        if found == offsets:
            return
        for position, offset, number, last_offset in zip(positions, offsets, numbers, found, strict=True):
            if last_offset is None or not _ends_append(index, offset, last_offset):
                text = f"no batch at position {position} ends with offset {offset}"
                self._problems.append(IndexProblem(number, text))

    def end(self, log_size: int, end_offset: int | None, *, cause: str) -> None:
        """Check the order of the entries and their range in a log of ``log_size`` bytes, and report the
        problems as one finding; ``cause`` is the code of the log's own damage."""
        self._problems += self._index.problems(log_size, end_offset=end_offset)
        if self._problems:
            text, entry = _summary(self._problems)
            self._findings.add("bad-index", self._path, text, position=entry * OFFSET_ENTRY.size, cause=cause)


def _ends_append(index: BatchIndex, offset: int, last_offset: int) -> bool:
    """Return True if ``offset`` ends the append that contains the batch: brokers before 4.0 index the last
    offset of the whole append, which may have several batches."""
    i = index.find(offset)
    ends_batch = i == len(index) or index.last_offset[i] == offset
    return offset == last_offset or (offset > last_offset and ends_batch)


class TimeIndexCheck:
    """The ``.timeindex`` of one segment."""

    def __init__(self, segment: SegmentReader, findings: Findings) -> None:
        self._path = segment.files.get("timeindex", "")
        self._findings = findings
        data = read_beside(segment, "timeindex", INDEX_LIMIT, findings) or b""
        self._index = TimeIndex(data, segment.base_offset)
        base_offset = segment.base_offset
        self._problems: list[IndexProblem] = []
        compared = _compared(data, TIME_ENTRY, len(self._index), segment.size, self._problems)
        entries = enumerate(compared)
        self._entries = sorted(
            [(base_offset + relative, timestamp, number) for number, (timestamp, relative) in entries]
        )
        self._next = 0
        self._largest = self._of_records = -1

    def window(self, index: BatchIndex) -> None:
        """Compare the entries with offsets in these batches."""
        if not len(index):
            return
        if not self._entries:
            self._note_records(index)
            return
        largest = list(accumulate(index.max_timestamp, max, initial=self._largest))[1:]
        self._largest = largest[-1]
        last_offset = index.last_offset[len(index) - 1]
        end = bisect_right(self._entries, last_offset, lo=self._next, key=itemgetter(0))
        entries = self._entries[self._next : end]
        self._next = max(end, self._next)
        so_far = dict(zip(index.last_offset, largest, strict=True))
        for offset, timestamp, number in entries:
            # older brokers store the record's offset, newer ones the last offset of its batch
            found = so_far.get(offset)
            if found is None:
                i = index.find(offset)
                found = largest[i] if i < len(index) and index.base_offset[i] <= offset else None
            if found != timestamp:
                self._problems.append(IndexProblem(number, _contradiction(offset, timestamp, found)))

    def _note_records(self, index: BatchIndex) -> None:
        counts = zip(index.max_timestamp, index.record_count, strict=True)
        found = max((timestamp for timestamp, count in counts if count), default=-1)
        self._of_records = max(self._of_records, found)

    def end(self, end_offset: int | None, *, is_believed: bool, cause: str) -> None:
        """Check the order of the entries and their range in a segment that ends before ``end_offset``, and
        report the problems as one finding. A broker that trusts an empty file uses the segment's modification
        time as the time of its newest record, so lookups by time miss records."""
        self._problems += self._index.problems(end_offset=end_offset)
        if is_believed and self._path and not self._index and self._of_records >= 0:
            text = f"there is none, and the segment has records up to timestamp {self._of_records}"
            self._problems.append(IndexProblem(0, text))
        if self._problems:
            text, entry = _summary(self._problems)
            position = entry * TIME_ENTRY.size
            self._findings.add("bad-timeindex", self._path, text, position=position, cause=cause)


def _summary(problems: list[IndexProblem]) -> tuple[str, int]:
    """Summarize the problems in one text, since one finding suffices to replace the file: the first wrong
    entry, and the number of wrong entries."""
    entries = {problem.entry for problem in problems}
    first = min(problems)
    more = f" ({len(entries)} entries are wrong)" if len(entries) > 1 else ""
    return f"entry {first.entry}: {first.text}{more}", first.entry


def _contradiction(offset: int, timestamp: int, found: int | None) -> str:
    if found is None:
        return f"no batch contains offset {offset}"
    return f"{timestamp} is not the largest timestamp up to offset {offset}, {found} is"
