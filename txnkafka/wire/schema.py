"""The elements of Kafka's message tables: types, fields, messages, version ranges.

A table has one line per field, with the versions that contain it, as in Kafka's own message definitions
(KIP-482 for the flexible versions: compact lengths and tagged fields). Tables are data: this module reads and
writes no bytes; ``wire.tables`` makes of one version of a table what the compiled reader and writer take.

Version ranges are Kafka's text: ``"0+"``, ``"1-3"``, ``"2"``, and ``""`` for none.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from txnkafka._core.message_table import SchemaError as SchemaError

ZERO_UUID: Final = "A" * 22
"""The text of the uuid that means none."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts; ``layout`` is its ``struct`` code where its size is fixed."""

    name: str
    layout: str = ""


BOOL: Final = Scalar("bool", "?")
INT8: Final = Scalar("int8", "b")
INT16: Final = Scalar("int16", "h")
INT32: Final = Scalar("int32", "i")
INT64: Final = Scalar("int64", "q")
UINT16: Final = Scalar("uint16", "H")
FLOAT64: Final = Scalar("float64", "d")
UUID: Final = Scalar("uuid")
STRING: Final = Scalar("string")
BYTES: Final = Scalar("bytes")
RECORDS: Final = Scalar("records")
"""Bytes of record batches; a reader of a view returns a view of them."""


@dataclass(frozen=True, slots=True)
class Array:
    """Elements of one type; only the array itself can be null."""

    element: Type

    @classmethod
    def of(cls, *fields: Field) -> Array:
        """An array of structs."""
        return cls(Struct(fields))


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in wire order; each struct of a flexible version ends with its own tagged fields."""

    fields: tuple[Field, ...]

    @classmethod
    def of(cls, *fields: Field) -> Struct:
        return cls(fields)


Type = Scalar | Array | Struct


class Zero(enum.Enum):
    """The zero value of a field's type: 0, false, "", zero uuid, an empty collection."""

    VALUE = enum.auto()


@dataclass(frozen=True, slots=True)
class Field:
    """One field: in ``versions``, null allowed in ``nullable``, positional unless it has a ``tag``.

    The ``default`` None is null; the zero value of a struct is the struct of its fields' defaults."""

    name: str
    type: Type
    versions: str = "0+"
    tag: int | None = None
    nullable: str = ""
    default: int | str | bool | Zero | None = Zero.VALUE


@dataclass(frozen=True, eq=False)
class Message:
    """A message or record; ``flexible`` are the versions with compact lengths and tagged fields.

    Written as ``Message("topic_record", "0", flexible="0+").of(Field(...), Field(...))``."""

    name: str
    versions: str
    flexible: str = ""
    fields: tuple[Field, ...] = ()

    def of(self, *fields: Field) -> Message:
        """Return the message with these fields."""
        return replace(self, fields=fields)


def in_versions(version: int, versions: str) -> bool:
    """Return whether ``version`` is in a range in Kafka's notation."""
    lowest, dash, highest = versions.removesuffix("+").partition("-")
    if not lowest or version < int(lowest):
        return False
    return versions.endswith("+") or version <= int(highest if dash else lowest)


def default_of(field: Field, version: int) -> Callable[[], Any]:
    """Return a function that creates the value of an absent field, as a reader returns it."""
    if field.default is not Zero.VALUE:
        return lambda: field.default
    kind = field.type
    if isinstance(kind, Struct):
        present = [inner for inner in kind.fields if in_versions(version, inner.versions)]
        parts = [(inner.name, default_of(inner, version)) for inner in present]
        return lambda: {name: default() for name, default in parts}
    if isinstance(kind, Array):
        return list
    zero = _ZERO.get(kind.name, 0)
    return lambda: zero


_ZERO: Final[dict[str, Any]] = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "uuid": ZERO_UUID}
