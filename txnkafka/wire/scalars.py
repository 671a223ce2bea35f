"""Varints outside tables: in the frame of a metadata record."""

from __future__ import annotations

from txnkafka.wire.schema import SchemaError

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


def write_uvarint(out: bytearray, value: int) -> None:
    """Append a number of at most 32 bits as unsigned LEB128."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
