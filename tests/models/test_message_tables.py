"""The compiled reader and writer against their model: random tables, values, cut and changed bytes."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models.message_tables import ModelReader, model_write
from tests.unit.wire.values import values_of
from txnkafka._core.message_reader import read
from txnkafka._core.message_table import Part, Table
from txnkafka._core.message_writer import write, write_frame
from txnkafka.wire import fields as words
from txnkafka.wire.fields import message
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
    Array,
    Field,
    Message,
    Scalar,
    SchemaError,
    Struct,
    Type,
)
from txnkafka.wire.tables import Tables

SCALARS = (BOOL, INT8, INT16, INT32, INT64, UINT16, FLOAT64, UUID, STRING, BYTES, RECORDS)
VERSION = 1
NULLABLE = ("string", "bytes", "records")
WORDS = {"bool": words.boolean, "bytes": words.data}


def kinds(depth: int) -> st.SearchStrategy[Type]:
    scalars = st.sampled_from(SCALARS)
    if not depth:
        return scalars
    structs = structs_of(depth - 1)
    return st.one_of(scalars, structs, st.builds(Array, structs), st.builds(Array, scalars))


@st.composite
def structs_of(draw: st.DrawFn, depth: int) -> Struct:
    fields: list[Field] = []
    for i in range(draw(st.integers(1, 4))):
        kind = draw(kinds(depth))
        can_be_null = not isinstance(kind, Scalar) or kind.name in NULLABLE
        nullable = "0+" if can_be_null and draw(st.booleans()) else ""
        is_tagged = draw(st.integers(0, 3)) == 0 and kind is not RECORDS
        has_null = nullable and is_tagged and draw(st.booleans())
        options: dict[str, Any] = {"default": None} if has_null else {}
        versions = draw(st.sampled_from(("0+", "0+", "0+", "1", "0", "2+")))
        tag = 2 * i + draw(st.integers(0, 1)) if is_tagged else None
        fields.append(Field(f"f{i}", kind, versions, tag=tag, nullable=nullable, **options))
    return Struct(tuple(fields))


def class_of(kind: Struct) -> type:
    """The message class of a table."""
    space: dict[str, Any] = {"__annotations__": {field.name: Any for field in kind.fields}}
    return message(type("Sample", (), space | {field.name: word_of(field) for field in kind.fields}))


def word_of(field: Field) -> Any:
    options: dict[str, Any] = {"nullable": field.nullable, "tag": field.tag, "ignorable": True}
    if field.default is None:
        options["default"] = None
    match field.type:
        case Array(Struct() as inner):
            return words.array(class_of(inner), field.versions, **options)
        case Array(Scalar() as scalar):
            return words.array(scalar, field.versions, **options)
        case Struct() as inner:
            return words.struct(class_of(inner), field.versions, **options)
    scalar = field.type
    assert isinstance(scalar, Scalar)
    return WORDS.get(scalar.name, getattr(words, scalar.name, None))(field.versions, **options)


def object_of(cls: type, value: Any) -> Any:
    """The object of a class that has the values of a dictionary."""
    found: dict[str, Any] = {}
    for field in words.fields_of(cls):
        if field.name not in value:
            continue
        kind, part = field.schema.type, value[field.name]
        if isinstance(kind, words.ArrayOf) and part is not None:
            element = kind.element
            part = tuple(object_of(element, each) if isinstance(element, type) else each for each in part)
        elif isinstance(kind, type) and part is not None:
            part = object_of(kind, part)
        found[field.name] = part
    return cls(**found)


@dataclass(frozen=True)
class Refused:
    """An error, as a value."""

    reason: str
    path: str
    position: int | None


def by_engine(table: Table, data: bytes | memoryview, position: int, limit: int) -> Any:
    try:
        return read(table, data, position, [limit, limit])
    except SchemaError as error:
        return Refused(error.reason, error.path, error.position)


def by_model(kind: type | Struct, flexible: bool, data: bytes, position: int, limit: int) -> Any:
    reader = ModelReader(VERSION, flexible, data, position, limit)
    try:
        return reader.struct(kind), reader.position
    except SchemaError as error:
        return Refused(error.reason, error.path, error.position)


def damaged(draw: Any, data: bytes) -> bytes:
    """Cut, or with another byte."""
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    byte = draw(st.sampled_from((0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF)))
    change = draw(st.integers(0, 2))
    return data[:at] if change == 0 else data[:at] + bytes([byte]) + data[at + (change == 1) :]


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("is_class", [False, True])
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), kind=structs_of(2))
def test_reads_and_writes_as_the_model(
    data: st.DataObject, kind: Struct, is_class: bool, flexible: bool
) -> None:
    table_message = Message("sample", "0+", flexible="0+" if flexible else "").of(*kind.fields)
    value: Any = data.draw(values_of(table_message, VERSION))
    subject: type | Struct = class_of(kind) if is_class else kind
    if isinstance(subject, type):
        value = object_of(subject, value)
    elif not flexible:
        tagged = [field.name for field in kind.fields if field.tag is not None]
        value = without(value, tagged) if not has_inner_tags(kind) else None
    table = Tables(VERSION, flexible).table(subject)
    encoded = data.draw(st.binary(max_size=60)) if value is None else write(table, value)
    if value is not None:
        assert encoded == model_write(subject, VERSION, flexible, value)
        header = data.draw(st.binary(max_size=9))
        frame = b"".join(write_frame(table, header, value)) if is_class else b""
        assert not is_class or frame[4:] == header + encoded
    limit = data.draw(st.sampled_from((1 << 20, 3, 10)))
    for content in (encoded, b"\0" + damaged(data.draw, encoded), damaged(data.draw, encoded)):
        for position in (0, min(1, len(content))):
            expected = by_model(subject, flexible, content, position, limit)
            found = by_engine(table, content, position, limit)
            if "nan" in repr(expected):  # which equals nothing
                assert repr(found) == repr(expected)
                continue
            assert found == expected
            assert by_engine(table, memoryview(bytearray(content)), position, limit) == expected


def without(value: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in names}


def has_inner_tags(kind: Struct) -> bool:
    for field in kind.fields:
        element = field.type.element if isinstance(field.type, Array) else field.type
        if not isinstance(element, Struct):
            continue
        if any(inner.tag is not None for inner in element.fields) or has_inner_tags(element):
            return True
    return False


# What a table accepts


class WithDictionary:
    a: int


@dataclass(slots=True)
class Two:
    a: int
    b: int


@dataclass(slots=True)
class Derived(Two):
    c: int


class Property:
    __slots__ = ("b",)

    @property
    def a(self) -> int:
        return 1


@pytest.mark.parametrize("cls", [WithDictionary, Property, Two, Derived, int])
def test_a_class_has_the_slots_of_the_fields_and_nothing_else(cls: type) -> None:
    with pytest.raises((TypeError, KeyError)):
        Table(cls, flexible=False, positional=(Part("a", "int8"),), tagged=())


def test_fields_of_a_class_are_all_there() -> None:
    a, b = Part("a", "int8"), Part("b", "int8")
    table = Table(Two, flexible=False, positional=(b, a), tagged=())
    assert read(table, b"\1\2", 0, [9, 9]) == (Two(2, 1), 2)
    with pytest.raises(TypeError, match="other slots"):
        Table(Two, flexible=False, positional=(a, a), tagged=())


def test_tags_ascend() -> None:
    tagged = (Part("a", "int8", tag=2), Part("b", "int8", tag=2))
    with pytest.raises(ValueError, match="tag 2 of b follows tag 2"):
        Table(None, flexible=True, positional=(), tagged=tagged)


def test_an_object_of_another_class_is_not_read_by_its_slots() -> None:
    table = Table(Two, flexible=False, positional=(Part("a", "int8"), Part("b", "int8")), tagged=())
    for value in (None, 5, "text", WithDictionary()):
        with pytest.raises(TypeError, match="is no Two"):
            write(table, value)
    with pytest.raises(AttributeError):
        write(table, Two.__new__(Two))
    assert write(table, Derived(1, 2, 3)) == b"\1\2"


def test_a_view_of_larger_items_is_read_as_its_bytes() -> None:
    table = Table(None, flexible=False, positional=(Part("a", "records"),), tagged=())
    view = memoryview(b"\0\0\0\4abcd").cast("i")
    assert read(table, view, 0, [9, 9]) == ({"a": b"abcd"}, 8)
    with pytest.raises(BufferError):
        read(table, memoryview(b"abcdefgh")[::2], 0, [9, 9])


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_outside_is_refused(position: int) -> None:
    table = Table(None, flexible=False, positional=(Part("a", "int8"),), tagged=())
    with pytest.raises(ValueError, match=f"position {position} is outside of 2 bytes"):
        read(table, b"ab", position, [9, 9])


@given(st.binary(min_size=16, max_size=16))
def test_uuids_are_base64(data: bytes) -> None:
    table = Table(None, flexible=False, positional=(Part("a", "uuid"),), tagged=())
    text = urlsafe_b64encode(data)[:22].decode()
    assert read(table, data, 0, [9, 9])[0] == {"a": text}
    assert write(table, {"a": text}) == data
    assert write(table, {"a": text.replace("-", "+").replace("_", "/")}) == data
