"""Records as Python objects, and what the attribute bits of a batch mean.

Objects cost more than decoding does; they are for people and tests. Bulk work stays in columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from txnkafka._core.columns import RecordColumns
from txnkafka.model import TimestampType

__all__ = ["Record", "header_key", "records_of"]

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """One record as a consumer returns it.

    ``timestamp`` is in milliseconds (-1: none), ``headers`` keep order and duplicates, ``leader_epoch`` is
    None where the batch has none. A header key that is not UTF-8 has U+FFFD in place of what is not, as
    Java's consumer does it.
    """

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    leader_epoch: int | None


def header_key(content: bytes) -> str:
    """A header key as text: what is not UTF-8 becomes U+FFFD where and as often as Java's String has it."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        # Java takes an encoded surrogate for one malformed character, Python for three
        return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", content).decode("utf-8", "replace")


class _Blobs:
    """One column of byte strings, by number."""

    def __init__(self, offsets: memoryview, data: memoryview, validity: memoryview | None) -> None:
        self.offsets = offsets.tolist()
        self.data = bytes(data)
        self.validity = None if validity is None else bytes(validity)

    def __getitem__(self, i: int) -> bytes | None:
        if self.validity is not None and not self.validity[i >> 3] >> (i & 7) & 1:
            return None
        return self.data[self.offsets[i] : self.offsets[i + 1]]


def _view(buffer: object) -> memoryview:
    return memoryview(buffer)  # type: ignore[arg-type]  # mypy knows buffers only from 3.12 on


def records_of(columns: RecordColumns) -> Iterator[Record]:
    """The records in ``columns``, which must hold copies. The columns are free again when the first record
    is returned."""
    keys = _Blobs(_view(columns.key_offsets), _view(columns.key_data), _optional(columns.key_validity))
    values = _Blobs(
        _view(columns.value_offsets), _view(columns.value_data), _optional(columns.value_validity)
    )
    offsets = _view(columns.offsets).tolist()
    timestamps = _view(columns.timestamps).tolist()
    headers = list(_headers(columns)) if columns.with_headers else [[] for _ in offsets]
    runs = list(
        zip(
            _view(columns.run_ends).tolist(),
            _view(columns.run_leader_epochs).tolist(),
            _view(columns.run_timestamp_types).tolist(),
            strict=True,
        )
    )
    return _records(offsets, timestamps, keys, values, headers, runs)


def _optional(buffer: object | None) -> memoryview | None:
    return None if buffer is None else _view(buffer)


def _headers(columns: RecordColumns) -> Iterator[list[Header]]:
    names = _Blobs(_view(columns.header_key_offsets), _view(columns.header_key_data), None)
    values = _Blobs(
        _view(columns.header_value_offsets),
        _view(columns.header_value_data),
        _optional(columns.header_value_validity),
    )
    bounds = _view(columns.header_offsets).tolist()
    for begin, end in pairwise(bounds):
        yield [(header_key(names[i] or b""), values[i]) for i in range(begin, end)]


def _records(
    offsets: list[int],
    timestamps: list[int],
    keys: _Blobs,
    values: _Blobs,
    headers: list[list[Header]],
    runs: list[tuple[int, int, int]],
) -> Iterator[Record]:
    begin = 0
    for end, leader_epoch, timestamp_type in runs:
        kind = TimestampType(timestamp_type)
        epoch = None if leader_epoch < 0 else leader_epoch
        for i in range(begin, end):
            yield Record(offsets[i], timestamps[i], kind, keys[i], values[i], headers[i], epoch)
        begin = end
