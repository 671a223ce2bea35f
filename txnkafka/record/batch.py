"""Records as Python objects.

Creating objects costs more than decoding; they are for interactive use and tests. Bulk work uses columns.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from txnkafka._core.columns import RecordColumns
from txnkafka.bounds import OBJECT_HEADERS, OBJECT_RECORDS
from txnkafka.model import TimestampType

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """One record as a consumer returns it.

    ``timestamp`` is in milliseconds (-1: none), ``headers`` keep order and duplicates, ``leader_epoch`` is
    None if the batch has none. Invalid UTF-8 in a header key is replaced by U+FFFD, as in Java's consumer."""

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    leader_epoch: int | None


def header_key(content: bytes) -> str:
    """Decode a header key: invalid UTF-8 is replaced by U+FFFD at the same places and as often as Java's
    String does."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        # an encoded surrogate is one malformed character in Java, three in Python
        return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", content).decode("utf-8", "replace")


def records_of(columns: RecordColumns) -> Iterator[Record]:
    """Yield the records in ``columns``, which must contain copies; some thousand objects are created at a
    time. The columns are in use until the iterator has ended or is closed."""
    return _records(_Columns(columns))


class _Columns:
    """Views of the columns that the records are made of; while they exist the columns are not reused."""

    def __init__(self, columns: RecordColumns) -> None:
        self.count = len(columns)
        self.offsets, self.timestamps = _view(columns.offsets), _view(columns.timestamps)
        self.keys = _Blobs(columns.key_offsets, columns.key_data, columns.key_validity)
        self.values = _Blobs(columns.value_offsets, columns.value_data, columns.value_validity)
        self.header_offsets: memoryview | None = None
        if columns.with_headers:
            self.header_offsets = _view(columns.header_offsets)
            self.header_keys = _Blobs(columns.header_key_offsets, columns.header_key_data, None)
            self.header_values = _Blobs(
                columns.header_value_offsets, columns.header_value_data, columns.header_value_validity
            )
        runs = (columns.run_ends, columns.run_leader_epochs, columns.run_timestamp_types)
        self._run = 0
        self._runs = list(zip(*(_view(run).tolist() for run in runs), strict=True))

    def headers(self, begin: int, end: int) -> list[list[Header]]:
        """Return the headers of each of the records ``begin`` to ``end``."""
        if self.header_offsets is None:
            return [[] for _ in range(begin, end)]
        offsets = self.header_offsets[begin : end + 1].tolist()
        first, last = offsets[0], offsets[-1]
        if first == last:
            return [[] for _ in range(begin, end)]
        found: list[Header] = []
        for at in range(first, last, OBJECT_HEADERS):
            to = min(at + OBJECT_HEADERS, last)
            pairs = zip(self.header_keys.some(at, to), self.header_values.some(at, to), strict=True)
            found += [(header_key(key or b""), value) for key, value in pairs]
        if end - begin == 1:
            return [found]
        return [found[at - first : to - first] for at, to in pairwise(offsets)]

    def of_runs(self, begin: int, end: int) -> tuple[list[TimestampType], list[int | None]]:
        """Return timestamp type and leader epoch of each of the records ``begin`` to ``end``; call it for
        consecutive ranges."""
        kinds: list[TimestampType] = []
        epochs: list[int | None] = []
        while begin < end:
            run_end, epoch, kind = self._runs[self._run]
            count = min(run_end, end) - begin
            kinds += [TimestampType(kind)] * count
            epochs += [None if epoch < 0 else epoch] * count
            begin += count
            self._run += begin == run_end
        return kinds, epochs


class _Blobs:
    """A column of byte strings."""

    def __init__(self, offsets: object, data: object, validity: object | None) -> None:
        self._offsets, self._data = _view(offsets), _view(data)
        self._validity = None if validity is None else _view(validity)

    def some(self, begin: int, end: int) -> list[bytes | None]:
        """Return the strings with numbers ``begin`` to ``end``."""
        offsets = self._offsets[begin : end + 1].tolist()
        first = offsets[0]
        content = bytes(self._data[first : offsets[-1]])
        found: list[bytes | None] = [content[at - first : to - first] for at, to in pairwise(offsets)]
        if self._validity is not None:
            bits = self._validity
            found = [value if bits[i >> 3] >> (i & 7) & 1 else None for i, value in enumerate(found, begin)]
        return found


def _view(buffer: object) -> memoryview:
    return memoryview(buffer)  # type: ignore[arg-type]  # mypy knows buffers only from 3.12 on


def _records(columns: _Columns) -> Iterator[Record]:
    begin = 0
    while begin < columns.count:
        end = _slice_end(columns.header_offsets, begin, columns.count)
        kinds, epochs = columns.of_runs(begin, end)
        yield from map(
            Record,
            columns.offsets[begin:end].tolist(),
            columns.timestamps[begin:end].tolist(),
            kinds,
            columns.keys.some(begin, end),
            columns.values.some(begin, end),
            columns.headers(begin, end),
            epochs,
        )
        begin = end


def _slice_end(header_offsets: memoryview | None, begin: int, count: int) -> int:
    """Return the end of the next slice of records, which has limited numbers of records and headers."""
    end = min(begin + OBJECT_RECORDS, count)
    if header_offsets is not None and header_offsets[end] - header_offsets[begin] > OBJECT_HEADERS:
        most = header_offsets[begin] + OBJECT_HEADERS
        end = max(begin + 1, bisect_right(header_offsets, most, begin, end) - 1)
    return end
