"""What generated readers call for lengths, strings, bytes and uuids.

Each reader takes the bytes, the position of its value, the end of what may be read and the name of the field
for its errors, and returns the value and the position behind it. A length is checked against the bytes that
are left before anything is made of them.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from struct import unpack_from
from typing import Any, Final

from txnkafka.wire.scalars import MAX_STRING_BYTES, read_uvarint, short
from txnkafka.wire.schema import SchemaError

__all__ = ["READERS", "ReadSized", "count_reader", "null", "short_run", "sized_reader", "uuid_text"]

ReadSized = Callable[[memoryview, int, int, str], tuple[Any, int]]
ReadLength = Callable[[memoryview, int, int, str], tuple[int, int]]


def null(name: str, position: int) -> SchemaError:
    """The error for a null where the version allows none."""
    return SchemaError("is null, which this version does not allow", position).inside(name)


def short_run(sizes: tuple[tuple[str, int], ...], position: int, end: int) -> SchemaError:
    """The error for fields of fixed sizes, side by side, that do not fit: names the first that does not."""
    for name, size in sizes:
        if position + size > end:
            return short(size, position, end).inside(name)
        position += size
    raise AssertionError("each field fits")


def uuid_text(data: bytes) -> str:
    """The 22 characters of a uuid."""
    return urlsafe_b64encode(data)[:22].decode("ascii")


# Lengths and counts: -1 is null


def compact_length(data: memoryview, position: int, end: int, name: str) -> tuple[int, int]:
    """A length of a flexible version."""
    if position < end and data[position] < 0x80:
        return data[position] - 1, position + 1
    try:
        value, after = read_uvarint(data, position, end)
    except SchemaError as error:
        raise error.inside(name) from None
    return value - 1, after


def _plain_length(layout: str, size: int) -> ReadLength:
    def plain_length(data: memoryview, position: int, end: int, name: str) -> tuple[int, int]:
        after = position + size
        if after > end:
            raise short(size, position, end).inside(name)
        (length,) = unpack_from(layout, data, position)
        if length < -1:
            raise SchemaError(f"length {length} is negative", position).inside(name)
        return length, after

    return plain_length


# Values of announced sizes


def _text(data: memoryview, start: int, stop: int, name: str) -> str:
    if stop - start > MAX_STRING_BYTES:
        reason = f"string has {stop - start} bytes, more than {MAX_STRING_BYTES}"
        raise SchemaError(reason, start).inside(name)
    try:
        return str(data[start:stop], "utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError("string is not UTF-8", start + error.start).inside(name) from None


def _copy(data: memoryview, start: int, stop: int, name: str) -> bytes:
    return bytes(data[start:stop])


def _view(data: memoryview, start: int, stop: int, name: str) -> memoryview:
    return data[start:stop]


def _sized(
    read_length: ReadLength, convert: Callable[[memoryview, int, int, str], Any], nullable: bool
) -> ReadSized:
    def sized(data: memoryview, position: int, end: int, name: str) -> tuple[Any, int]:
        size, start = read_length(data, position, end, name)
        if size < 0:
            if nullable:
                return None, start
            raise null(name, position)
        stop = start + size
        if stop > end:
            raise short(size, start, end).inside(name)
        return convert(data, start, stop, name), stop

    return sized


def count_reader(flexible: bool) -> ReadLength:
    """The reader of the count of an array; -1 is null."""
    return compact_length if flexible else _PLAIN["bytes"]


_PLAIN: Final = {"string": _plain_length(">h", 2), "bytes": _plain_length(">i", 4)}
_PLAIN["records"] = _PLAIN["bytes"]
_CONVERT: Final = {"string": _text, "bytes": _copy, "records": _view}


def sized_reader(kind: str, flexible: bool, nullable: bool) -> str:
    """The name, in READERS, of the reader of a string, of bytes or of records."""
    return "read_" + "nullable_" * nullable + "compact_" * flexible + kind


READERS: Final = {
    sized_reader(kind, flexible, nullable): _sized(
        compact_length if flexible else _PLAIN[kind], convert, nullable
    )
    for kind, convert in _CONVERT.items()
    for flexible in (False, True)
    for nullable in (False, True)
}
