"""Writers of types without parts, the mirror of ``wire.scalars``: numbers, varints, uuids, strings, bytes.

Each is ``(out, value) -> None``, appends to a bytearray, and raises ``SchemaError`` for a value that does not
fit; then the contents of the bytearray must be discarded.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from collections.abc import Callable
from reprlib import repr as short_repr
from typing import Any, Final

from txnkafka.wire.scalars import MAX_STRING_BYTES
from txnkafka.wire.schema import BOOL, Scalar, SchemaError

__all__ = ["MAX_LENGTH", "Write", "compile_length_writer", "compile_scalar_writer", "misfit", "write_uvarint"]

Write = Callable[[bytearray, Any], None]
WriteLength = Callable[[bytearray, int], None]

MAX_LENGTH: Final = 0x7FFFFFFF
UUID_BYTES: Final = 16
UUID_CHARACTERS: Final = 22


def write_uvarint(out: bytearray, value: int) -> None:
    """Append a number of at most 32 bits as unsigned LEB128."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def compile_scalar_writer(kind: Scalar, flexible: bool, nullable: bool) -> Write:
    """Return the writer of a scalar type, for flexible versions or for others."""
    if kind is BOOL:
        return _write_bool
    if kind.layout:
        return _fixed(kind)
    if kind.name == "uuid":
        return _write_uuid
    if kind.name == "string":
        return _string(compile_length_writer(flexible, "h"), nullable)
    return _bytes(compile_length_writer(flexible, "i"), nullable)


def compile_length_writer(flexible: bool, layout: str) -> WriteLength:
    """Return the writer of a length or count; -1 is null. ``layout`` is for versions that are not
    flexible."""
    if flexible:
        return lambda out, length: write_uvarint(out, length + 1)
    pack = struct.Struct(">" + layout).pack
    return lambda out, length: out.extend(pack(length))


def misfit(kind: str, value: object) -> SchemaError:
    """Return the error for a value that is no ``kind``, or is out of its range."""
    if value is None:
        return SchemaError("is null, which this version does not allow")
    if isinstance(value, int) and value.bit_length() > 64:
        return SchemaError(f"an integer of {value.bit_length()} bits is no {kind}")
    return SchemaError(f"{short_repr(value)} is no {kind}")


def _write_bool(out: bytearray, value: Any) -> None:
    if value is not True and value is not False:
        raise misfit("bool", value)
    out.append(value)


def _fixed(kind: Scalar) -> Write:
    pack = struct.Struct(">" + kind.layout).pack

    def write(out: bytearray, value: Any) -> None:
        try:
            out += pack(value)
        except (struct.error, OverflowError):
            raise misfit(kind.name, value) from None

    return write


def _write_uuid(out: bytearray, value: Any) -> None:
    try:
        data = urlsafe_b64decode(value + "==") if len(value) == UUID_CHARACTERS else b""
    except (TypeError, ValueError):
        data = b""
    if len(data) != UUID_BYTES:
        raise misfit(f"uuid of {UUID_CHARACTERS} characters in base64", value)
    out += data


def _string(write_length: WriteLength, nullable: bool) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            write_length(out, -1)
            return
        if not isinstance(value, str):
            raise misfit("string", value)
        try:
            data = value.encode()
        except UnicodeEncodeError:
            raise SchemaError(f"{short_repr(value)} has a lone surrogate, which is no UTF-8") from None
        if len(data) > MAX_STRING_BYTES:
            raise SchemaError(f"string has {len(data)} bytes, more than {MAX_STRING_BYTES}")
        write_length(out, len(data))
        out += data

    return write


def _bytes(write_length: WriteLength, nullable: bool) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            write_length(out, -1)
            return
        if not isinstance(value, bytes | bytearray | memoryview):
            raise misfit("bytes", value)
        data = bytes(value)
        if len(data) > MAX_LENGTH:
            raise SchemaError(f"{len(data)} bytes are more than {MAX_LENGTH}")
        write_length(out, len(data))
        out += data

    return write
