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


def _view(buffer: object) -> memoryview:
    return memoryview(buffer)  # type: ignore[arg-type]  # mypy knows buffers only from 3.12 on


def records_of(columns: RecordColumns) -> Iterator[Record]:
    """The records in ``columns``, which must hold copies. The columns are free again when this returns."""
    offsets = _view(columns.offsets).tolist()
    keys = _blobs(columns.key_offsets, columns.key_data, columns.key_validity)
    values = _blobs(columns.value_offsets, columns.value_data, columns.value_validity)
    headers = _headers(columns) if columns.with_headers else [[] for _ in offsets]
    kinds, epochs = _of_runs(columns)
    return map(Record, offsets, _view(columns.timestamps).tolist(), kinds, keys, values, headers, epochs)


def _blobs(offsets: object, data: object, validity: object | None) -> list[bytes | None]:
    """One column of byte strings."""
    content = bytes(_view(data))
    found: list[bytes | None] = [content[begin:end] for begin, end in pairwise(_view(offsets).tolist())]
    if validity is not None:
        bits = bytes(_view(validity))
        found = [each if bits[i >> 3] >> (i & 7) & 1 else None for i, each in enumerate(found)]
    return found


def _headers(columns: RecordColumns) -> list[list[Header]]:
    keys = _blobs(columns.header_key_offsets, columns.header_key_data, None)
    values = _blobs(columns.header_value_offsets, columns.header_value_data, columns.header_value_validity)
    headers = [(header_key(key or b""), value) for key, value in zip(keys, values, strict=True)]
    return [headers[begin:end] for begin, end in pairwise(_view(columns.header_offsets).tolist())]


def _of_runs(columns: RecordColumns) -> tuple[list[TimestampType], list[int | None]]:
    """Timestamp type and leader epoch of each record."""
    kinds: list[TimestampType] = []
    epochs: list[int | None] = []
    runs = (columns.run_ends, columns.run_leader_epochs, columns.run_timestamp_types)
    for end, epoch, kind in zip(*(_view(run).tolist() for run in runs), strict=True):
        count = end - len(kinds)
        kinds += [TimestampType(kind)] * count
        epochs += [None if epoch < 0 else epoch] * count
    return kinds, epochs
