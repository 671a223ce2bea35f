"""The digest of the records that a side has read, on which both sides of a comparison must agree.

Bytes enter as CRC-32 of all keys and of all values, concatenated in record order; the boundaries are in the
CRC of the lengths (int32 pairs, little-endian, -1 for null). Digest.java computes the same.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Digest", "DigestBuilder"]

_pack_lengths = struct.Struct("<ii").pack


class Digest(NamedTuple):
    """Totals and checksums of records in order."""

    records: int
    offset_sum: int
    timestamp_sum: int
    key_bytes: int
    value_bytes: int
    key_crc: int
    value_crc: int
    length_crc: int

    @classmethod
    def of(cls, fields: Mapping[str, int]) -> Digest:
        """Create a digest from the JSON object that the Java side prints."""
        return cls(**{name: fields[name] for name in cls._fields})

    @property
    def touch_sum(self) -> int:
        """The sum of a timed Java round (Touch.java), before it wraps around at 64 bits."""
        return self.offset_sum + self.timestamp_sum + self.key_bytes + self.value_bytes


class DigestBuilder:
    """Adds records, one by one or in columns."""

    def __init__(self) -> None:
        self._sums = [0, 0, 0, 0, 0]
        self._key_crc = self._value_crc = self._length_crc = 0

    def add_record(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> None:
        key_length = -1 if key is None else len(key)
        value_length = -1 if value is None else len(value)
        self._add_sums(1, offset, timestamp, max(key_length, 0), max(value_length, 0))
        self._key_crc = zlib.crc32(key or b"", self._key_crc)
        self._value_crc = zlib.crc32(value or b"", self._value_crc)
        self._length_crc = zlib.crc32(_pack_lengths(key_length, value_length), self._length_crc)

    def add_copies(self, columns: Any) -> None:
        """Add the records of a RecordColumns in copy form."""
        key_lengths = _lengths(columns.key_offsets, columns.key_validity)
        value_lengths = _lengths(columns.value_offsets, columns.value_validity)
        self._add_columns(columns, key_lengths, value_lengths, columns.key_data, columns.value_data)

    def add_views(self, columns: Any, source: Any) -> None:
        """Add the records of a RecordColumns in view form; positions are relative to ``source``."""
        key_lengths = np.array(columns.key_lengths)
        value_lengths = np.array(columns.value_lengths)
        keys = _gather(source, columns.key_positions, key_lengths)
        values = _gather(source, columns.value_positions, value_lengths)
        self._add_columns(columns, key_lengths, value_lengths, keys, values)

    def _add_columns(
        self, columns: Any, key_lengths: Any, value_lengths: Any, keys: Any, values: Any
    ) -> None:
        self._add_sums(
            len(columns),
            int(np.asarray(columns.offsets).sum()),
            int(np.asarray(columns.timestamps).sum()),
            int(key_lengths.clip(0).sum()),
            int(value_lengths.clip(0).sum()),
        )
        self._key_crc = zlib.crc32(keys, self._key_crc)
        self._value_crc = zlib.crc32(values, self._value_crc)
        pairs = np.column_stack([key_lengths, value_lengths]).astype("<i4")
        self._length_crc = zlib.crc32(pairs.tobytes(), self._length_crc)

    def _add_sums(self, *more: int) -> None:
        self._sums = [total + n for total, n in zip(self._sums, more, strict=True)]

    def digest(self) -> Digest:
        # wrap around as Java's long does
        records, offsets, timestamps, key_bytes, value_bytes = (_int64(total) for total in self._sums)
        crcs = (self._key_crc, self._value_crc, self._length_crc)
        return Digest(records, offsets, timestamps, key_bytes, value_bytes, *crcs)


def _int64(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _lengths(offsets: Any, validity: Any) -> Any:
    lengths = np.diff(np.asarray(offsets))
    if validity is not None:
        valid = np.unpackbits(np.asarray(validity), bitorder="little")[: len(lengths)]
        lengths[valid == 0] = -1
    return lengths


def _gather(source: Any, positions: Any, lengths: Any) -> bytes:
    sizes = lengths.clip(0)
    starts = np.asarray(positions).astype(np.int64)
    first = np.concatenate(([0], np.cumsum(sizes)[:-1])) if len(sizes) else sizes
    index = np.repeat(starts - first, sizes) + np.arange(int(sizes.sum()))
    gathered: bytes = np.frombuffer(source, dtype=np.uint8)[index].tobytes()
    return gathered
