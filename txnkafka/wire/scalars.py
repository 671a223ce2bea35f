"""Varints and limits that all readers share, and the error for a value that exceeds its end."""

from __future__ import annotations

from txnkafka.wire.schema import SchemaError

__all__ = ["MAX_STRING_BYTES", "Data", "read_uvarint", "short"]

MAX_STRING_BYTES = 0x7FFF

Data = bytes | memoryview


def read_uvarint(data: Data, position: int, end: int) -> tuple[int, int]:
    """Read an unsigned LEB128 number of at most 32 bits."""
    start, value, shift = position, 0, 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise SchemaError("varint has more than 32 bits", start)
            return value, position
        shift += 7
        if shift > 28:
            raise SchemaError("varint has more than 5 bytes", start)
    raise SchemaError("varint is cut off", start)


def short(size: int, position: int, end: int) -> SchemaError:
    """Return the error for a value of ``size`` bytes that would exceed the end."""
    return SchemaError(f"needs {size} bytes, {end - position} are left", position)
