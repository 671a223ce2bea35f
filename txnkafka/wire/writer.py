"""Compiles the tables of ``wire.schema`` to writers, the mirror of ``wire.reader``: dictionaries to bytes.

The bytes are those of Kafka's generated classes: tagged fields ascend by their tags and are left out where
they have their default, unknown ones (UNKNOWN_TAGGED_FIELDS) are written between them.  Every result of a
reader can be written. Every positional field of the version is required; a name that the version does not
have and a value that does not fit (range, length, null, type) raise a ``SchemaError`` with the path of the
field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any, Final

from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS, read_message
from txnkafka.wire.scalar_writers import (
    Write,
    compile_length_writer,
    compile_scalar_writer,
    misfit,
    write_uvarint,
)
from txnkafka.wire.schema import (
    BOOL,
    Array,
    Field,
    Message,
    Scalar,
    SchemaError,
    Struct,
    Type,
    default_of,
    in_versions,
)

__all__ = ["write_message", "writer_of"]

# No table has eight values per byte, so a smaller message never has too many values for the reader.
SURELY_READABLE: Final = MAX_SCHEMA_VALUES // 8
MAX_TAG: Final = 0xFFFFFFFF

Tagged = tuple[int, str, Write, Callable[[], Any]]
_MISSING: Final = object()


def write_message(message: Message, version: int, fields: dict[str, Any]) -> bytes:
    """Return the bytes of a message. Raises SchemaError for more values than ``read_message`` accepts."""
    out = bytearray()
    writer_of(message, version)(out, fields)
    data = bytes(out)
    if len(data) > SURELY_READABLE:
        read_message(message, version, data)
    return data


@cache
def writer_of(message: Message, version: int) -> Write:
    """Return the writer of one version. Raises ``SchemaError`` where the table has no such version."""
    if not in_versions(version, message.versions):
        raise SchemaError(f"{message.name} version {version} is not known (known: {message.versions})")
    return _struct(message.fields, version, in_versions(version, message.flexible))


def _compile_field(field: Field, version: int, flexible: bool) -> Write:
    nullable = in_versions(version, field.nullable)
    write = _compile(field.type, version, flexible, nullable)
    if nullable and isinstance(field.type, Struct):
        return _nullable_struct(write, null=b"\xff" if field.tag is None else b"\0")
    return write


def _compile(kind: Type, version: int, flexible: bool, nullable: bool) -> Write:
    if isinstance(kind, Struct):
        return _struct(kind.fields, version, flexible)
    if isinstance(kind, Array):
        return _array(kind.element, version, flexible, nullable)
    return compile_scalar_writer(kind, flexible, nullable)


def _array(kind: Type, version: int, flexible: bool, nullable: bool) -> Write:
    write_length = compile_length_writer(flexible, "i")
    if _is_number(kind):
        write_elements = _numbers(kind)
    else:
        write_elements = _elements(_compile(kind, version, flexible, nullable=False))

    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            write_length(out, -1)
            return
        if not isinstance(value, list):  # readers return lists; a tuple would not equal a default
            raise misfit("list", value)
        if len(value) > MAX_SCHEMA_VALUES:
            raise SchemaError(f"{len(value)} elements, a record has at most {MAX_SCHEMA_VALUES} values")
        write_length(out, len(value))
        write_elements(out, value)

    return write


def _elements(write_element: Write) -> Write:
    def write(out: bytearray, values: Any) -> None:
        i = 0
        try:
            for i in range(len(values)):
                write_element(out, values[i])
        except SchemaError as error:
            raise error.inside(f"[{i}]") from None

    return write


def _is_number(kind: Type) -> bool:
    return isinstance(kind, Scalar) and kind.layout != "" and kind is not BOOL


def _numbers(kind: Type) -> Write:
    """Return a writer of elements of fixed size, in one call."""
    assert isinstance(kind, Scalar)
    layout = kind.layout
    write_one = _elements(compile_scalar_writer(kind, False, False))

    def write(out: bytearray, values: Any) -> None:
        try:
            out += struct.pack(f">{len(values)}{layout}", *values)
        except (struct.error, OverflowError):
            write_one(out, values)  # raises the error with its index

    return write


def _struct(fields: tuple[Field, ...], version: int, flexible: bool) -> Write:
    present = [field for field in fields if in_versions(version, field.versions)]
    write_positional = _positional([field for field in present if field.tag is None], version, flexible)
    names = frozenset(field.name for field in present)
    if not flexible:
        return _checked(write_positional, names)
    tagged = [
        (field.tag, field.name, _compile_field(field, version, flexible), default_of(field, version))
        for field in present
        if field.tag is not None
    ]
    write_tagged = _tagged(sorted(tagged, key=itemgetter(0)))

    def write(out: bytearray, values: Any) -> None:
        write_positional(out, values)
        write_tagged(out, values)

    return _checked(write, names | {UNKNOWN_TAGGED_FIELDS})


def _checked(write_fields: Write, names: frozenset[str]) -> Write:
    def write(out: bytearray, values: Any) -> None:
        if not isinstance(values, dict):
            raise misfit("struct", values)
        if not names.issuperset(values):
            name = next(str(name) for name in values if name not in names)
            raise SchemaError("this version has no such field").inside(name)
        write_fields(out, values)

    return write


def _positional(fields: list[Field], version: int, flexible: bool) -> Write:
    """Join consecutive numbers, which are written in one call."""
    steps: list[tuple[str | None, Write]] = []
    run: list[Field] = []
    for field in fields:
        if _is_number(field.type):
            run.append(field)
            continue
        if run:
            steps.append((None, _run(run)))
            run = []
        steps.append((field.name, _compile_field(field, version, flexible)))
    if run:
        steps.append((None, _run(run)))

    def write(out: bytearray, values: Any) -> None:
        for name, write_field in steps:
            if name is None:
                write_field(out, values)
                continue
            value = values.get(name, _MISSING)
            if value is _MISSING:
                raise SchemaError("is missing").inside(name)
            try:
                write_field(out, value)
            except SchemaError as error:
                raise error.inside(name) from None

    return write


def _run(fields: list[Field]) -> Write:
    scalars = [(field.name, field.type) for field in fields if isinstance(field.type, Scalar)]
    pack = struct.Struct(">" + "".join(kind.layout for _, kind in scalars)).pack
    # itemgetter returns a tuple only for several items
    first, *others = (name for name, _ in scalars)
    get = itemgetter(first, *others) if others else (lambda values: (values[first],))

    def write(out: bytearray, values: Any) -> None:
        try:
            out += pack(*get(values))
        except (KeyError, struct.error, OverflowError):
            raise _wrong_number(scalars, values) from None

    return write


def _wrong_number(scalars: list[tuple[str, Scalar]], values: dict[str, Any]) -> SchemaError:
    for name, kind in scalars:
        if name not in values:
            return SchemaError("is missing").inside(name)
        try:
            struct.pack(">" + kind.layout, values[name])
        except (struct.error, OverflowError):
            return misfit(kind.name, values[name]).inside(name)
    raise AssertionError("each number fits")


def _tagged(known: list[Tagged]) -> Write:
    tags = frozenset(tag for tag, *_ in known)

    def write(out: bytearray, values: Any) -> None:
        parts: list[tuple[int, bytes | bytearray]] = []
        for tag, name, write_field, default in known:
            value = values.get(name, _MISSING)
            if value is _MISSING or value == default():
                continue
            part = bytearray()
            try:
                write_field(part, value)
            except SchemaError as error:
                raise error.inside(name) from None
            parts.append((tag, part))
        if UNKNOWN_TAGGED_FIELDS in values:
            parts = _with_unknown(parts, values[UNKNOWN_TAGGED_FIELDS], tags)
        write_uvarint(out, len(parts))
        for tag, data in parts:
            write_uvarint(out, tag)
            write_uvarint(out, len(data))
            out += data

    return write


def _with_unknown(
    parts: list[tuple[int, bytes | bytearray]], unknown: Any, known: frozenset[int]
) -> list[tuple[int, bytes | bytearray]]:
    if not isinstance(unknown, list):
        raise misfit("list of (tag, bytes)", unknown).inside(UNKNOWN_TAGGED_FIELDS)
    last = -1
    for entry in unknown:
        match entry:
            case (int(tag), bytes()) if last < tag <= MAX_TAG and tag not in known:
                last = tag
            case _:
                kind = f"(tag, bytes) behind tag {last} with a tag that this version does not know"
                raise misfit(kind, entry).inside(UNKNOWN_TAGGED_FIELDS)
    return sorted([*parts, *unknown], key=itemgetter(0))


def _nullable_struct(write_struct: Write, *, null: bytes) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if value is None:
            out += null
            return
        out.append(1)
        write_struct(out, value)

    return write
