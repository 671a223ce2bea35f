"""Field constructors for message classes: one line a field, as in Kafka's message definitions.

    @message
    class EndTxnResponse:
        throttle_time_ms: int = int32(ignorable=True)
        error_code: int = int16()
        producer_id: int = int64("5+", default=-1, ignorable=True)

``versions`` and ``nullable`` are ranges in Kafka's notation (``wire.schema.in_versions``). A field with a
``tag`` is a tagged field (KIP-482). In a version without the field, a writer drops its value if the field is
``ignorable``, and otherwise refuses all but the default. Defaults are Kafka's: zero, false, "", the zero
uuid, an empty array, a struct of defaults, and null for records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from txnkafka._core.message_class import message_class
from txnkafka.wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UINT16,
    UUID,
    ZERO_UUID,
    Array,
    Field,
    Scalar,
    Struct,
    in_versions,
)

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array: of scalars, or of structs, which are message classes or tables. Elements are never null."""

    element: Scalar | type | Struct | ArrayOf


Type = Scalar | ArrayOf | type | Struct


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """The type and versions of a field."""

    type: Type
    versions: str = "0+"
    nullable: str = ""
    tag: int | None = None
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class MessageField:
    """A field of a message class with its name and its default."""

    name: str
    default: Any
    schema: FieldSchema

    def is_in(self, version: int) -> bool:
        """Return whether this version of the message has the field."""
        return in_versions(version, self.schema.versions)

    def is_nullable(self, version: int) -> bool:
        """Return whether the field may be null in this version."""
        return in_versions(version, self.schema.nullable)


class _Declared(NamedTuple):
    """A field of a class that ``message`` makes."""

    schema: FieldSchema
    default: Any
    is_shown: bool


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """Make a class of frozen objects with slots, built from keywords, for messages and for the structs in
    them."""
    declared: Mapping[str, _Declared] = {name: cls.__dict__[name] for name in cls.__annotations__}
    rows = declared.values()
    made = message_class(
        cls, tuple(declared), tuple(row.default for row in rows), [row.is_shown for row in rows]
    )
    fields = tuple(MessageField(name, row.default, row.schema) for name, row in declared.items())
    made.__message_fields__ = fields  # type: ignore[attr-defined]
    return made


def is_message(value: object) -> bool:
    """Return whether a value is an object of a message class."""
    return hasattr(value, "__message_fields__")


def replaced(value: T, **changes: Any) -> T:
    """Return a copy of a message with other values of some fields."""
    kind: Any = type(value)
    made: T = kind(**{field.name: getattr(value, field.name) for field in fields_of(kind)} | changes)
    return made


@cache
def fields_of(kind: type | Struct) -> tuple[MessageField, ...]:
    """Return the fields of a message class, or of a struct in a table, in wire order. Defaults of a table
    are not values, but objects of ``wire.schema``."""
    if isinstance(kind, Struct):
        return tuple(MessageField(field.name, field.default, _schema_of(field)) for field in kind.fields)
    fields: tuple[MessageField, ...] = kind.__message_fields__  # type: ignore[attr-defined]
    return fields


def _schema_of(field: Field) -> FieldSchema:
    return FieldSchema(_typed(field.type), field.versions, field.nullable, field.tag)


def _typed(kind: Scalar | Array | Struct) -> Type:
    return ArrayOf(_typed(kind.element)) if isinstance(kind, Array) else kind


def boolean(versions: str = "0+", **options: Any) -> Any:
    """Declare a bool of one byte."""
    return _field(BOOL, versions, False, **options)


def int8(versions: str = "0+", **options: Any) -> Any:
    """Declare a signed integer of 8 bits."""
    return _field(INT8, versions, 0, **options)


def int16(versions: str = "0+", **options: Any) -> Any:
    """Declare a signed integer of 16 bits."""
    return _field(INT16, versions, 0, **options)


def int32(versions: str = "0+", **options: Any) -> Any:
    """Declare a signed integer of 32 bits."""
    return _field(INT32, versions, 0, **options)


def int64(versions: str = "0+", **options: Any) -> Any:
    """Declare a signed integer of 64 bits."""
    return _field(INT64, versions, 0, **options)


def uint16(versions: str = "0+", **options: Any) -> Any:
    """Declare an unsigned integer of 16 bits."""
    return _field(UINT16, versions, 0, **options)


def float64(versions: str = "0+", **options: Any) -> Any:
    """Declare a floating-point number of 64 bits."""
    return _field(FLOAT64, versions, 0.0, **options)


def uuid(versions: str = "0+", **options: Any) -> Any:
    """Declare a uuid, as 22 characters of base64, as Kafka shows it."""
    return _field(UUID, versions, ZERO_UUID, **options)


def string(versions: str = "0+", **options: Any) -> Any:
    """Declare text of at most 32,767 bytes in UTF-8."""
    return _field(STRING, versions, "", **options)


def data(versions: str = "0+", **options: Any) -> Any:
    """Declare bytes; a reader copies them out of the frame."""
    return _field(BYTES, versions, b"", **options)


def records(versions: str = "0+", **options: Any) -> Any:
    """Declare record batches: a reader returns a view of the frame, a writer adds the buffer to its list
    without a copy."""
    return _field(RECORDS, versions, None, **options)


def array(element: Scalar | type, versions: str = "0+", **options: Any) -> Any:
    """Declare a tuple of scalars or structs."""
    return _field(ArrayOf(element), versions, (), **options)


def struct(cls: type, versions: str = "0+", **options: Any) -> Any:
    """Declare one struct."""
    return _field(cls, versions, cls(), **options)


def _field(
    kind: Type, versions: str, zero: object, *, shown: bool = True, default: object = ..., **options: Any
) -> Any:
    """Declare a field; ``shown=False`` keeps a secret out of the object's repr."""
    schema = FieldSchema(kind, versions, **options)
    value = zero if default is ... else default
    return _Declared(schema, value, shown)
