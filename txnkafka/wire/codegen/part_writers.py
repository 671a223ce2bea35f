"""What generated writers call for parts that contain others: arrays, structs, tagged fields.

Each is made for one field, and is ``(out, gather, value) -> None``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from txnkafka.wire.codegen.primitive_writers import (
    Gather,
    WriteSized,
    count_writer,
    uuid_bytes,
)
from txnkafka.wire.scalar_writers import misfit, write_uvarint
from txnkafka.wire.schema import SchemaError

__all__ = [
    "WritePart",
    "array_writer",
    "number_writer",
    "sized_part_writer",
    "struct_writer",
    "write_tagged_fields",
]

WritePart = Callable[[bytearray, Gather, Any], None]


def number_writer(layout: str, kind: str, name: str) -> WritePart:
    """One number; a uuid where the layout is ``>16s``. ``kind`` is its type in errors."""
    pack = struct.Struct(layout).pack

    def number(out: bytearray, gather: Gather, value: Any) -> None:
        try:
            out += pack(uuid_bytes(value, name) if layout == ">16s" else value)
        except (struct.error, OverflowError):
            raise misfit(kind, value).inside(name) from None

    return number


def sized_part_writer(write: WriteSized, name: str) -> WritePart:
    """A string or bytes."""
    return lambda out, gather, value: write(out, gather, value, name)


def struct_writer(write: WritePart, name: str, *, nullable: bool, null: int = 0xFF) -> WritePart:
    """A struct that is a field; where it may be null behind a byte, which is 1 or that of ``null``."""

    def struct_field(out: bytearray, gather: Gather, value: Any) -> None:
        if value is None:
            if not nullable:
                raise misfit("struct", None).inside(name)
            out.append(null)
            return
        if nullable:
            out.append(1)
        try:
            write(out, gather, value)
        except SchemaError as error:
            raise error.inside(name) from None

    return struct_field


def array_writer(write_element: WritePart, name: str, *, flexible: bool, nullable: bool) -> WritePart:
    """An array of whatever ``write_element`` writes."""
    write_length = count_writer(flexible)

    def array(out: bytearray, gather: Gather, value: Sequence[Any] | None) -> None:
        if value is None:
            if not nullable:
                raise misfit("array", None).inside(name)
            write_length(out, -1)
            return
        write_length(out, len(value))
        index = 0
        try:
            for element in value:
                if element is None:
                    raise misfit("element", None)
                write_element(out, gather, element)
                index += 1
        except SchemaError as error:
            raise error.inside(f"[{index}]").inside(name) from None

    return array


def write_tagged_fields(out: bytearray, tagged: list[tuple[int, WritePart, Any]]) -> None:
    """Tagged fields that do not have their defaults, in the order of their tags."""
    write_uvarint(out, len(tagged))
    for tag, write, value in tagged:
        write_uvarint(out, tag)
        start = len(out)
        out.append(0)
        write(out, [], value)
        size = len(out) - start - 1
        if size < 0x80:
            out[start] = size
        else:
            field = out[start + 1 :]
            del out[start:]
            write_uvarint(out, size)
            out += field
