"""Varints and limits that all writers share, and the error for a value that does not fit."""

from __future__ import annotations

from reprlib import repr as short_repr
from typing import Final

from txnkafka.wire.schema import SchemaError

__all__ = ["MAX_LENGTH", "misfit", "write_uvarint"]

MAX_LENGTH: Final = 0x7FFFFFFF


def write_uvarint(out: bytearray, value: int) -> None:
    """Append a number of at most 32 bits as unsigned LEB128."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def misfit(kind: str, value: object) -> SchemaError:
    """Return the error for a value that is no ``kind``, or is out of its range."""
    if value is None:
        return SchemaError("is null, which this version does not allow")
    if isinstance(value, int) and value.bit_length() > 64:
        return SchemaError(f"an integer of {value.bit_length()} bits is no {kind}")
    return SchemaError(f"{short_repr(value)} is no {kind}")
