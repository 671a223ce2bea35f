"""Generated writers of tables (``wire.schema``): they take what the generated readers of tables return.

Stricter than those of messages: a missing or unknown field, a tuple for a list and a number for a bool
are refused. Tagged fields may be missing, and unknown ones are written between them. The source of one
struct:

    def write_struct(out, gather, value):
        check_fields(value, required, optional)
        try:
            out += pack_0(value["producer_id"])
        except number_errors:
            raise wrong_number(numbers_0, value) from None
        tagged = []
        found = value.get("next_producer_id", next_producer_id_default)
        if found != next_producer_id_default:
            tagged.append((1, write_next_producer_id, found))
        if "unknown_tagged_fields" in value:
            tagged = with_unknown(tagged, value["unknown_tagged_fields"], tags)
        write_tagged_fields(out, tagged)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from operator import itemgetter
from typing import Any, Final

from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.wire.codegen.fields import ArrayOf, MessageField
from txnkafka.wire.codegen.part_readers import UNKNOWN_TAGGED_FIELDS
from txnkafka.wire.codegen.part_writers import WritePart
from txnkafka.wire.codegen.primitive_writers import Gather
from txnkafka.wire.codegen.writer_source import StructWriter, VersionWriters
from txnkafka.wire.scalar_writers import misfit
from txnkafka.wire.schema import (
    BOOL,
    BYTES,
    RECORDS,
    Message,
    Scalar,
    SchemaError,
    Struct,
    default_of,
    in_versions,
)

__all__ = ["writer_of"]

MAX_TAG: Final = 0xFFFFFFFF


@cache
def writer_of(message: Message, version: int) -> WritePart:
    """The writer of one version. Raises ``SchemaError`` where the table has no such version."""
    if not in_versions(version, message.versions):
        raise SchemaError(f"{message.name} version {version} is not known (known: {message.versions})")
    return TableWriters(version, in_versions(version, message.flexible)).writer(Struct(message.fields))


class TableWriters(VersionWriters):
    """Makes the writers of the structs of one version of a table, each once."""

    def struct(self, kind: type | Struct) -> StructWriter:
        """The source of one function."""
        return TableWriter(self, kind)

    def array(self, kind: ArrayOf, name: str, nullable: bool) -> WritePart:
        """The writer of an array."""
        return _checked_list(super().array(kind, name, nullable), name)

    def scalar(self, kind: Scalar, name: str, nullable: bool = False) -> WritePart:
        """The writer of a number, a string or bytes on its own."""
        write = super().scalar(kind, name, nullable)
        return _checked_bool(write, name) if kind is BOOL else write

    def sized(self, kind: Scalar, nullable: bool) -> str:
        """The name, in WRITERS, of the writer of a string or of bytes; records are copied."""
        return super().sized(BYTES if kind is RECORDS else kind, nullable)


class TableWriter(StructWriter):
    """Collects the source of one function of a table."""

    def __init__(self, writers: VersionWriters, kind: type | Struct) -> None:
        assert isinstance(kind, Struct)
        self._fields = {field.name: field for field in kind.fields}
        super().__init__(writers, kind)

    def _add_checks(self, present: list[MessageField]) -> None:
        optional = {field.name for field in present if field.schema.tag is not None}
        self.names |= {
            "bool_of": bool_of,
            "check_fields": check_fields,
            "optional": frozenset(optional | {UNKNOWN_TAGGED_FIELDS} if self._writers.flexible else ()),
            "required": tuple(field.name for field in present if field.name not in optional),
            "with_unknown": with_unknown,
            "wrong_number": wrong_number,
        }
        self._add("check_fields(value, required, optional)")

    def _add_absent(self, fields: Iterable[MessageField]) -> None:
        """They are refused with all unknown names."""

    def _value(self, name: str) -> str:
        return f'value["{name}"]'

    def _packed(self, field: MessageField) -> str:
        if field.schema.type is BOOL:
            return f'bool_of({self._value(field.name)}, "{field.name}")'
        return super()._packed(field)

    def _add_tagged(self, tagged: list[MessageField]) -> None:
        self.names["tags"] = frozenset(field.schema.tag for field in tagged)
        self._add("tagged = []")
        for field in sorted(tagged, key=lambda field: field.schema.tag or 0):
            name, table_field = field.name, self._fields[field.name]
            self.names[f"write_{name}"] = self._writers.part(field)
            self.names[f"{name}_default"] = default_of(table_field, self._writers.version)()
            self._add(
                f'found = value.get("{name}", {name}_default)',
                f"if found != {name}_default:",
                f"    tagged.append(({field.schema.tag}, write_{name}, found))",
            )
        self._add(
            f'if "{UNKNOWN_TAGGED_FIELDS}" in value:',
            f'    tagged = with_unknown(tagged, value["{UNKNOWN_TAGGED_FIELDS}"], tags)',
            "write_tagged_fields(out, tagged)",
        )


# What the source calls


def check_fields(value: Any, required: tuple[str, ...], optional: frozenset[str]) -> None:
    """Raise SchemaError for what is no dictionary with the names of the version."""
    if not isinstance(value, dict):
        raise misfit("struct", value)
    left = len(value)
    for name in required:
        if name not in value:
            raise SchemaError("is missing").inside(name)
        left -= 1
    for name in optional if left else ():
        left -= name in value
    if left:
        name = next(str(name) for name in value if name not in required and name not in optional)
        raise SchemaError("this version has no such field").inside(name)


def bool_of(value: Any, name: str) -> bool:
    """The value, which is to be True or False."""
    if value is not True and value is not False:
        raise misfit("bool", value).inside(name)
    return value


def wrong_number(numbers: tuple[tuple[str, str, str], ...], value: dict[str, Any]) -> SchemaError:
    """The error for a struct of which a number does not fit; each has a field, a layout and a type."""
    for name, layout, kind in numbers:
        try:
            struct.pack(layout, value[name])
        except (struct.error, OverflowError):
            return misfit(kind, value[name]).inside(name)
    raise AssertionError("each number fits")


def with_unknown(
    known: list[tuple[int, WritePart, Any]], unknown: Any, tags: frozenset[int]
) -> list[tuple[int, WritePart, Any]]:
    """The tagged fields to write, and unknown ones between them."""
    if not isinstance(unknown, list):
        raise misfit("list of (tag, bytes)", unknown).inside(UNKNOWN_TAGGED_FIELDS)
    last = -1
    for entry in unknown:
        match entry:
            case (int(tag), bytes()) if last < tag <= MAX_TAG and tag not in tags:
                last = tag
            case _:
                kind = f"(tag, bytes) behind tag {last} with a tag that this version does not know"
                raise misfit(kind, entry).inside(UNKNOWN_TAGGED_FIELDS)
    parts = [*known, *((tag, _write_raw, data) for tag, data in unknown)]
    return sorted(parts, key=itemgetter(0))


def _write_raw(out: bytearray, gather: Gather, value: Any) -> None:
    out += value


def _checked_list(write: WritePart, name: str) -> WritePart:
    def array(out: bytearray, gather: Gather, value: Any) -> None:
        if value is not None and not isinstance(value, list):  # a tuple would not equal a default
            raise misfit("list", value).inside(name)
        if value is not None and len(value) > MAX_SCHEMA_VALUES:
            reason = f"{len(value)} elements, a record has at most {MAX_SCHEMA_VALUES} values"
            raise SchemaError(reason).inside(name)
        write(out, gather, value)

    return array


def _checked_bool(write: WritePart, name: str) -> WritePart:
    return lambda out, gather, value: write(out, gather, bool_of(value, name))
