"""What generated writers call for numbers that do not fit, lengths, strings, bytes and uuids.

A writer appends to ``out``. Records are not copied: ``gather`` gets the position in ``out`` where they belong
and the buffer itself. What does not fit is a ``SchemaError``; what was appended by then is of no use.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from collections.abc import Callable
from reprlib import repr as short_repr
from typing import Any, Final

from txnkafka.wire.codegen.fields import Buffer
from txnkafka.wire.scalar_writers import MAX_LENGTH, misfit, write_uvarint
from txnkafka.wire.scalars import MAX_STRING_BYTES
from txnkafka.wire.schema import SchemaError

__all__ = [
    "WRITERS",
    "Gather",
    "WriteSized",
    "count_writer",
    "sized_writer",
    "unsupported",
    "uuid_bytes",
    "wrong_number",
]

Gather = list[tuple[int, Buffer]]
WriteSized = Callable[[bytearray, Gather, Any, str], None]
WriteLength = Callable[[bytearray, int], None]

UUID_BYTES: Final = 16
UUID_CHARACTERS: Final = 22


def unsupported(name: str, value: object) -> SchemaError:
    """The error for a value other than the default where the version has no such field."""
    return SchemaError(f"this version has no such field for {short_repr(value)}").inside(name)


def wrong_number(numbers: tuple[tuple[str, str, str], ...], value: object) -> SchemaError:
    """The error for a struct of which a number does not fit; each has a field, a layout and a type."""
    for name, layout, kind in numbers:
        number = getattr(value, name)
        try:
            struct.pack(layout, number)
        except (struct.error, OverflowError):
            return misfit(kind, number).inside(name)
    raise AssertionError("each number fits")


def uuid_bytes(value: Any, name: str) -> bytes:
    """The 16 bytes of a uuid of 22 characters."""
    try:
        data = urlsafe_b64decode(value + "==") if len(value) == UUID_CHARACTERS else b""
    except (TypeError, ValueError):
        data = b""
    if len(data) != UUID_BYTES:
        raise misfit(f"uuid of {UUID_CHARACTERS} characters in base64", value).inside(name)
    return data


# Lengths and counts: -1 is null


def _compact_length(out: bytearray, length: int) -> None:
    if length < 0x7F:
        out.append(length + 1)
    else:
        write_uvarint(out, length + 1)


def _plain_length(layout: str) -> WriteLength:
    pack = struct.Struct(layout).pack

    def plain_length(out: bytearray, length: int) -> None:
        out += pack(length)

    return plain_length


_INT16_LENGTH: Final = _plain_length(">h")
_INT32_LENGTH: Final = _plain_length(">i")


def count_writer(flexible: bool) -> WriteLength:
    """The writer of the count of an array."""
    return _compact_length if flexible else _INT32_LENGTH


# Strings, bytes and records, by their names in WRITERS


def _write_text(out: bytearray, gather: Gather, value: Any, write_length: WriteLength) -> None:
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


def _write_copy(out: bytearray, gather: Gather, value: Any, write_length: WriteLength) -> None:
    write_length(out, _size(value))
    out += bytes(value)  # a view may have gaps


def _write_view(out: bytearray, gather: Gather, value: Any, write_length: WriteLength) -> None:
    size = _size(value)
    write_length(out, size)
    if size:
        gather.append((len(out), value))


def _size(value: Any) -> int:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise misfit("bytes", value)
    size = value.nbytes if isinstance(value, memoryview) else len(value)
    if size > MAX_LENGTH:
        raise SchemaError(f"{size} bytes are more than {MAX_LENGTH}")
    return size


def _sized(
    write_value: Callable[[bytearray, Gather, Any, WriteLength], None],
    write_length: WriteLength,
    nullable: bool,
) -> WriteSized:
    def sized(out: bytearray, gather: Gather, value: Any, name: str) -> None:
        if value is None and nullable:
            write_length(out, -1)
            return
        try:
            write_value(out, gather, value, write_length)
        except SchemaError as error:
            raise error.inside(name) from None

    return sized


def sized_writer(kind: str, flexible: bool, nullable: bool) -> str:
    """The name, in WRITERS, of the writer of a string, of bytes or of records."""
    return "write_" + "nullable_" * nullable + "compact_" * flexible + kind


WRITERS: Final = {
    sized_writer(kind, flexible, nullable): _sized(write, _compact_length if flexible else plain, nullable)
    for kind, write, plain in (
        ("string", _write_text, _INT16_LENGTH),
        ("bytes", _write_copy, _INT32_LENGTH),
        ("records", _write_view, _INT32_LENGTH),
    )
    for flexible in (False, True)
    for nullable in (False, True)
}
