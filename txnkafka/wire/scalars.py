"""Readers of types without parts: numbers, varints, uuids, strings, bytes, and the lengths before them.

Each is ``(data, position, end) -> (value, next position)`` and never reads a byte at or behind ``end``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from struct import Struct as Layout
from typing import Any, Final, NamedTuple

from txnkafka.wire.schema import Scalar, SchemaError

__all__ = [
    "COMPACT_LENGTH",
    "INT8_READER",
    "INT32_LENGTH",
    "MAX_STRING_BYTES",
    "Compiled",
    "Data",
    "Read",
    "compile_scalar",
    "null_or_raise",
    "read_uvarint",
    "short",
]

MAX_STRING_BYTES = 0x7FFF

Data = bytes | memoryview
Read = Callable[[Data, int, int], tuple[Any, int]]


class Compiled(NamedTuple):
    """A reader, the minimal size of a value of its type, and the number of Python values that it becomes
    (elements of an array are counted when they are read)."""

    read: Read
    minimum_size: int
    values: int = 1


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


def compile_scalar(kind: Scalar, flexible: bool, nullable: bool) -> Compiled:
    """Return the reader of a scalar type, for flexible versions or for others."""
    if kind.layout:
        return _fixed(kind.layout)
    if kind.name == "uuid":
        return Compiled(_read_uuid, 16)
    plain = INT16_LENGTH if kind.name == "string" else INT32_LENGTH
    return _sized(_CONVERT[kind.name], COMPACT_LENGTH if flexible else plain, nullable)


def null_or_raise(length: int, position: int, nullable: bool) -> tuple[None, int]:
    """Check a negative length or count at ``position``: it is null, or an error is raised."""
    if length != -1:
        raise SchemaError(f"length {length} is negative", position)
    if not nullable:
        raise SchemaError("is null, which this version does not allow", position)
    return None, position


def short(size: int, position: int, end: int) -> SchemaError:
    """Return the error for a value of ``size`` bytes that would exceed the end."""
    return SchemaError(f"needs {size} bytes, {end - position} are left", position)


def _fixed(layout: str) -> Compiled:
    form = Layout(">" + layout)
    unpack_from, size = form.unpack_from, form.size

    def read(data: Data, position: int, end: int) -> tuple[Any, int]:
        after = position + size
        if after > end:
            raise short(size, position, end)
        return unpack_from(data, position)[0], after

    return Compiled(read, size)


def _compact_length(data: Data, position: int, end: int) -> tuple[int, int]:
    if position < end and data[position] < 0x80:
        return data[position] - 1, position + 1
    value, position = read_uvarint(data, position, end)
    return value - 1, position


INT8_READER: Final = _fixed("b").read
INT16_LENGTH: Final = _fixed("h")
INT32_LENGTH: Final = _fixed("i")
COMPACT_LENGTH: Final = Compiled(_compact_length, 1)


def _read_uuid(data: Data, position: int, end: int) -> tuple[str, int]:
    after = position + 16
    if after > end:
        raise short(16, position, end)
    return urlsafe_b64encode(data[position:after])[:22].decode("ascii"), after


def _sized(convert: Callable[[Data, int], Any], length: Compiled, nullable: bool) -> Compiled:
    read_length = length.read

    def read(data: Data, position: int, end: int) -> tuple[Any, int]:
        size, start = read_length(data, position, end)
        if size < 0:
            return null_or_raise(size, position, nullable)[0], start
        after = start + size
        if after > end:
            raise short(size, start, end)
        return convert(data[start:after], start), after

    return Compiled(read, length.minimum_size)


def _text(data: Data, position: int) -> str:
    if len(data) > MAX_STRING_BYTES:
        raise SchemaError(f"string has {len(data)} bytes, more than {MAX_STRING_BYTES}", position)
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError("string is not UTF-8", position + error.start) from None


_CONVERT: Final[dict[str, Callable[[Data, int], Any]]] = {
    "string": _text,
    "bytes": lambda data, position: bytes(data),
    "records": lambda data, position: data,
}
