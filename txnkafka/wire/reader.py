"""Compiles the tables of ``wire.schema`` to readers: bytes in, plain dictionaries out.

A reader is a closure, created once per table and version. Every announced length and count is checked against
the remaining bytes before anything of that size is allocated. An element of three bytes becomes a dictionary
of a hundred times that size, so the values of one record are counted too: more than MAX_SCHEMA_VALUES are
refused. Bytes that do not follow the table raise ``SchemaError``; no other exception leaves this module.

uuids become their 22 characters, unknown tagged fields are kept as ``(tag, bytes)`` in UNKNOWN_TAGGED_FIELDS,
known ones that are absent have their default. Two checks are stricter than Kafka's: tags must ascend, and a
known tagged field must fill its announced size.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.wire.scalars import (
    COMPACT_LENGTH,
    INT8_READER,
    INT32_LENGTH,
    Compiled,
    Data,
    Read,
    compile_scalar,
    null_or_raise,
    read_uvarint,
    short,
)
from txnkafka.wire.schema import (
    Array,
    Field,
    Message,
    SchemaError,
    Struct,
    Type,
    default_of,
    in_versions,
)

__all__ = ["UNKNOWN_TAGGED_FIELDS", "read_message", "reader_of"]

UNKNOWN_TAGGED_FIELDS: Final = "unknown_tagged_fields"

Default = Callable[[], Any]


class _Left(threading.local):
    """The number of values that the record which this thread reads may still have."""

    values = MAX_SCHEMA_VALUES


_left = _Left()


def _take(count: int, position: int) -> None:
    _left.values -= count
    if _left.values < 0:
        raise SchemaError(f"the record has more than {MAX_SCHEMA_VALUES} values", position)


def read_message(
    message: Message, version: int, data: Data, position: int = 0, *, same_record: bool = False
) -> tuple[dict[str, Any], int]:
    """Return the fields of the message at ``position``, and the position behind it.

    With ``same_record`` the message is inside of the one that was read last, and its values count as part of
    it.
    """
    if not same_record:
        _left.values = MAX_SCHEMA_VALUES
    return reader_of(message, version)(data, position, len(data))


@cache
def reader_of(message: Message, version: int) -> Read:
    """Return the reader of one version. Raises ``SchemaError`` where the table has no such version."""
    if not in_versions(version, message.versions):
        raise SchemaError(f"{message.name} version {version} is not known (known: {message.versions})", 0)
    flexible = in_versions(version, message.flexible)
    return _struct(message.fields, version, flexible).read


def _compile_field(field: Field, version: int, flexible: bool) -> Compiled:
    nullable = in_versions(version, field.nullable)
    compiled = _compile(field.type, version, flexible, nullable)
    if nullable and isinstance(field.type, Struct):
        return _nullable_struct(compiled, null=-1 if field.tag is None else 0)
    return compiled


def _compile(kind: Type, version: int, flexible: bool, nullable: bool) -> Compiled:
    if isinstance(kind, Struct):
        return _struct(kind.fields, version, flexible)
    if isinstance(kind, Array):
        element = _compile(kind.element, version, flexible, nullable=False)
        return _array(element, COMPACT_LENGTH if flexible else INT32_LENGTH, nullable)
    return compile_scalar(kind, flexible, nullable)


def _array(element: Compiled, length: Compiled, nullable: bool) -> Compiled:
    read_length, read_element = length.read, element.read
    element_size, element_values = max(element.minimum_size, 1), element.values

    def read(data: Data, position: int, end: int) -> tuple[Any, int]:
        count, start = read_length(data, position, end)
        if count < 0:
            return null_or_raise(count, position, nullable)[0], start
        if count * element_size > end - start:
            raise SchemaError(f"{count} elements do not fit into the {end - start} bytes left", position)
        _take(count * element_values, position)
        values: list[Any] = []
        try:
            for _ in range(count):
                value, start = read_element(data, start, end)
                values.append(value)
        except SchemaError as error:
            raise error.inside(f"[{len(values)}]") from None
        return values, start

    return Compiled(read, length.minimum_size)


def _struct(fields: tuple[Field, ...], version: int, flexible: bool) -> Compiled:
    positional: list[tuple[str, Read]] = []
    tagged: dict[int, tuple[str, Read]] = {}
    defaults: list[tuple[str, Default]] = []
    minimum_size, values = 1 if flexible else 0, 1
    for field in fields:
        if not in_versions(version, field.versions):
            continue
        compiled = _compile_field(field, version, flexible)
        values += compiled.values
        if field.tag is None:
            positional.append((field.name, compiled.read))
            minimum_size += compiled.minimum_size
        else:
            tagged[field.tag] = (field.name, compiled.read)
            defaults.append((field.name, default_of(field, version)))
    read_positional = _positional_fields(positional)
    if not flexible:
        return Compiled(read_positional, minimum_size, values)
    return Compiled(_with_tagged_fields(read_positional, tagged, defaults), minimum_size, values)


def _positional_fields(fields: list[tuple[str, Read]]) -> Read:
    def read(data: Data, position: int, end: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        name = ""
        try:
            for name, read_field in fields:
                values[name], position = read_field(data, position, end)
        except SchemaError as error:
            raise error.inside(name) from None
        return values, position

    return read


def _with_tagged_fields(
    read_positional: Read, known: dict[int, tuple[str, Read]], defaults: list[tuple[str, Default]]
) -> Read:
    def read(data: Data, position: int, end: int) -> tuple[dict[str, Any], int]:
        values, position = read_positional(data, position, end)
        for name, default in defaults:
            values[name] = default()
        count, start = read_uvarint(data, position, end)
        if 2 * count > end - start:
            raise SchemaError(f"{count} tagged fields do not fit into the {end - start} bytes left", position)
        _take(3 * count, position)
        last_tag = -1
        for _ in range(count):
            tag, position = read_uvarint(data, start, end)
            size, position = read_uvarint(data, position, end)
            if tag <= last_tag:
                raise SchemaError(f"tag {tag} follows tag {last_tag}", start)
            if size > end - position:
                raise short(size, position, end)
            last_tag, start = tag, position + size
            if tag in known:
                name, read_field = known[tag]
                values[name] = _read_all(read_field, name, data, position, start)
            else:
                values.setdefault(UNKNOWN_TAGGED_FIELDS, []).append((tag, bytes(data[position:start])))
        return values, start

    return read


def _read_all(read_field: Read, name: str, data: Data, start: int, end: int) -> Any:
    try:
        value, position = read_field(data, start, end)
        if position != end:
            raise SchemaError(f"{end - position} bytes are left over in the tagged field", position)
    except SchemaError as error:
        raise error.inside(name) from None
    return value


# Kafka writes the null of a positional struct as int8 -1, of a tagged one as varint 0; 1 means present.
def _nullable_struct(struct: Compiled, *, null: int) -> Compiled:
    def read(data: Data, position: int, end: int) -> tuple[Any, int]:
        presence, after = INT8_READER(data, position, end)
        if presence == 1:
            return struct.read(data, after, end)
        if presence != null:
            raise SchemaError(f"a struct that may be null begins with 1 or {null}, not {presence}", position)
        return None, after

    return Compiled(read, 1, struct.values)
