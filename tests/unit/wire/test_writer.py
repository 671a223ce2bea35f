"""Messages are written as Kafka's classes write them; a value that does not fit is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.unit.wire.kafka_classes import Sample, messages, samples
from tests.unit.wire.test_kafka_samples import FULLEST, MESSAGES, UNTAGGED, short_name, start_of
from tests.unit.wire.values import values_of
from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.wire import scalars
from txnkafka.wire.fields import ArrayOf, fields_of
from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS, read_message
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
    Message,
    SchemaError,
    Struct,
    Type,
    in_versions,
)
from txnkafka.wire.tables import Tables
from txnkafka.wire.writer import SURELY_READABLE, write_message

PLAIN, FLEXIBLE = 0, 1
EXAMPLES = 200 if LONG else 20
TABLES = [
    (message, version)
    for message in messages().values()
    for version in range(20)
    if in_versions(version, message.versions)
]


def message_of(*fields: Field) -> Message:
    return Message("sample", "0-1", flexible="1").of(*fields)


def write_one(kind: Type, value: object, version: int = FLEXIBLE, nullable: str = "") -> bytes:
    return write_message(message_of(Field("a", kind, nullable=nullable)), version, {"a": value})


# As Kafka writes it


@pytest.mark.parametrize("sample", samples(), ids=short_name)
def test_writes_what_kafka_wrote(sample: Sample) -> None:
    message, start = MESSAGES[sample.kafka_class], start_of(sample)
    fields, _ = read_message(message, sample.version, sample.data, start)
    assert write_message(message, sample.version, fields) == sample.data[start:]


@pytest.mark.parametrize("sample", UNTAGGED, ids=short_name)
def test_a_tagged_field_of_a_later_kafka_is_written_again(sample: Sample) -> None:
    message, start = MESSAGES[sample.kafka_class], start_of(sample)
    later = sample.data[:-1] + b"\x02\x63\x03abc\x64\x00"
    fields, _ = read_message(message, sample.version, later, start)
    assert write_message(message, sample.version, fields) == later[start:]


@pytest.mark.parametrize(("message", "version"), TABLES, ids=lambda each: getattr(each, "name", str(each)))
def test_what_was_written_reads_as_it_was(message: Message, version: int) -> None:
    @settings(max_examples=EXAMPLES)
    @given(values_of(message, version))
    def round_trip(fields: dict[str, Any]) -> None:
        data = write_message(message, version, fields)
        assert read_message(message, version, data) == (fields, len(data))

    round_trip()


# Tagged fields

TAGGED = message_of(
    Field("a", INT8, "1", tag=3, default=-1),
    Field("b", STRING, "1", tag=1, nullable="1", default=None),
    Field("c", Struct.of(Field("d", INT16)), "1", tag=0, nullable="1"),
)


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ({}, "00"),
        ({"a": -1, "b": None, "c": {"d": 0}}, "00"),
        ({"a": 0}, "01 03 01 00"),
        ({"a": 7, "b": ""}, "02 01 01 01 03 01 07"),
        ({"c": None}, "01 00 01 00"),
        ({"c": {"d": 1}}, "01 00 04 01 0001 00"),
        ({"a": 7, UNKNOWN_TAGGED_FIELDS: [(2, b"x"), (200, b"")]}, "03 02 01 78 03 01 07 c801 00"),
    ],
)
def test_tagged_fields_ascend_and_defaults_are_left_out(fields: dict[str, Any], data: str) -> None:
    assert write_message(TAGGED, FLEXIBLE, fields) == bytes.fromhex(data)


@pytest.mark.parametrize(
    "unknown",
    [[(3, b"")], [(2, b""), (2, b"")], [(5, b""), (4, b"")], [(-1, b"")], [(9, "x")], [7], 7, [(9,)]],
)
def test_unknown_tagged_fields_that_cannot_be_written(unknown: object) -> None:
    with pytest.raises(SchemaError, match=f"^{UNKNOWN_TAGGED_FIELDS}: "):
        write_message(TAGGED, FLEXIBLE, {UNKNOWN_TAGGED_FIELDS: unknown})


def test_a_null_struct_that_is_no_tagged_field() -> None:
    kind = Struct.of(Field("d", INT16))
    assert write_one(kind, None, nullable="0+") == b"\xff\0"
    assert write_one(kind, {"d": 2}, nullable="0+") == b"\1\0\2\0\0"
    assert write_one(kind, None, PLAIN, nullable="0+") == b"\xff"


# What does not fit

WRONG = [
    *((kind, value) for kind in (INT8, INT16, INT32, INT64, UINT16) for value in (None, "1", 1.0, 2**63)),
    (INT8, 128), (INT8, -129), (INT16, 2**15), (INT16, -(2**15) - 1), (INT32, 2**31), (INT64, -(2**63) - 1),
    (UINT16, -1), (UINT16, 2**16), (INT64, 10**10_000), (FLOAT64, "x"), (FLOAT64, 10**400), (FLOAT64, None),
    (BOOL, 1), (BOOL, None), (BOOL, "true"), (UUID, None), (UUID, ""), (UUID, "A" * 21), (UUID, "A" * 23),
    (UUID, "*" * 22), (UUID, "\u00fc" * 22), (UUID, b"A" * 22), (UUID, 7), (UUID, ["A"] * 22), (STRING, None),
    (STRING, b"x"), (STRING, 5), (STRING, "\ud800"), (STRING, "x" * 32768), (STRING, "\u00fc" * 16384),
    (BYTES, None), (BYTES, "x"), (BYTES, 7), (RECORDS, [1]), (Array(INT32), None), (Array(INT32), 7),
    (Array(STRING), "abc"), (Array(INT32), (1, 2)), (Array(INT32), {1: 2}),
    (Struct.of(Field("d", INT8)), None), (Struct.of(Field("d", INT8)), [1]),
]  # fmt: skip


@pytest.mark.parametrize("version", [PLAIN, FLEXIBLE])
@pytest.mark.parametrize(("kind", "value"), WRONG, ids=lambda each: type(each).__name__)
def test_a_value_that_does_not_fit_is_refused_by_name(kind: Type, value: object, version: int) -> None:
    with pytest.raises(SchemaError) as caught:
        write_one(kind, value, version)
    assert caught.value.path == "a"
    assert caught.value.position is None
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (STRING, "x" * 32767),
        (STRING, "\u00fc" * 16383),
        (UUID, ZERO_UUID),
        (INT64, True),
        (BYTES, bytearray(b"x")),
        (BYTES, memoryview(b"axb")[1:2]),
        (BYTES, memoryview(b"abcd")[::2]),
        (Array(INT32), [1, 2]),
    ],
)
@pytest.mark.parametrize("version", [PLAIN, FLEXIBLE])
def test_a_value_that_just_fits(kind: Type, value: object, version: int) -> None:
    data = write_one(kind, value, version)
    fields, position = read_message(message_of(Field("a", kind)), version, data)
    assert position == len(data)
    expected = bytes(value) if isinstance(value, bytearray | memoryview) else value
    assert fields == {"a": expected}


NESTED = message_of(
    Field("before", INT16),
    Field("after", INT32),
    Field("members", Array.of(Field("id", STRING), Field("epochs", Array(INT32)), Field("state", INT8))),
)
MEMBER = {"id": "m", "epochs": [1], "state": 0}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"before": 1, "after": 2}, "members: is missing"),
        ({"before": 1, "members": []}, "after: is missing"),
        ({"before": 2**15, "after": 2**31, "members": []}, "before: 32768 is no int16"),
        ({"before": 1, "after": None, "members": []}, "after: is null, which this version does not allow"),
        ({"before": 1, "after": 2, "members": [], "more": 3}, "more: this version has no such field"),
        ({"before": 1, "after": 2, "members": [MEMBER, {**MEMBER, "id": None}]},
         "members[1].id: is null, which this version does not allow"),
        ({"before": 1, "after": 2, "members": [{**MEMBER, "epochs": [0, 1, 2**31]}]},
         "members[0].epochs[2]: 2147483648 is no int32"),
        ({"before": 1, "after": 2, "members": [MEMBER, {"id": "m", "epochs": []}]},
         "members[1].state: is missing"),
        ({"before": 1, "after": 2, "members": [7]}, "members[0]: 7 is no struct"),
        ({"before": 1, "after": 2, "members": [{**MEMBER, "x": 1}]},
         "members[0].x: this version has no such field"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [PLAIN, FLEXIBLE])
def test_an_error_names_the_field(fields: dict[str, Any], error: str, version: int) -> None:
    with pytest.raises(SchemaError) as caught:
        write_message(NESTED, version, fields)
    assert str(caught.value) == error


def test_a_field_of_another_version_is_refused() -> None:
    message = message_of(Field("a", INT8), Field("b", INT8, "1"))
    with pytest.raises(SchemaError, match=r"^b: this version has no such field$"):
        write_message(message, PLAIN, {"a": 1, "b": 2})


@pytest.mark.parametrize("version", [-1, 2, 99])
def test_an_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(SchemaError, match=rf"^sample version {version} is not known \(known: 0-1\)$"):
        write_message(NESTED, version, {})


# Bounds


def test_no_more_values_are_written_than_can_be_read() -> None:
    message = message_of(Field("a", Array.of(Field("b", Array(INT8)))))
    most = MAX_SCHEMA_VALUES // 100
    with pytest.raises(SchemaError, match=f"more than {MAX_SCHEMA_VALUES} values"):
        write_message(message, FLEXIBLE, {"a": [{"b": [0] * 100}] * most})
    fields = {"a": [{"b": [0] * 100}] * (most - 200)}
    data = write_message(message, FLEXIBLE, fields)
    assert read_message(message, FLEXIBLE, data) == (fields, len(data))


def test_an_array_is_bounded_before_it_is_written() -> None:
    with pytest.raises(SchemaError, match=r"^a: \d+ elements"):
        write_one(Array(INT8), [0] * (MAX_SCHEMA_VALUES + 1))


def densest(kind: Any, tables: Tables) -> float:
    """The most values that a byte of an element can become."""
    inner = [kind.element] if isinstance(kind, ArrayOf) else []
    inner += [field.schema.type for field in fields_of(kind)] if isinstance(kind, Struct) else []
    here = tables._values(kind) / max(tables._minimum_size(kind), 1)
    return max([here, *(densest(each, tables) for each in inner)])


@pytest.mark.parametrize(("message", "version"), TABLES, ids=lambda each: getattr(each, "name", str(each)))
def test_few_bytes_never_have_too_many_values(message: Message, version: int) -> None:
    """So that only what is longer has to be read for a count; a tagged field of two bytes counts three."""
    kinds = [field.schema.type for field in fields_of(Struct(message.fields))]
    tables = Tables(version, in_versions(version, message.flexible))
    most = max((densest(each.element, tables) for each in kinds if isinstance(each, ArrayOf)), default=0)
    assert max(most, 1.5) * SURELY_READABLE < MAX_SCHEMA_VALUES - 1000


# Whatever is given

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["before", "after", "members", "id", "epochs", "state", "a"]), inner
        )
    ),
)


def written_or_refused(fields: dict[str, Any], version: int) -> bytes | None:
    try:
        return write_message(NESTED, version, fields)
    except SchemaError:
        return None


@given(ANYTHING, ANYTHING, ANYTHING)
def test_no_value_raises_anything_else(before: object, after: object, members: object) -> None:
    fields = {"before": before, "after": after, "members": members}
    for version in (PLAIN, FLEXIBLE):
        data = written_or_refused(fields, version)
        assert data is None or read_message(NESTED, version, data) == (fields, len(data))


@settings(max_examples=10 * EXAMPLES)
@given(st.sampled_from(list(FULLEST.values())), st.data())
def test_what_can_be_read_can_be_written(sample: Sample, data: st.DataObject) -> None:
    """Also out of damaged bytes, which may have lengths in more bytes than needed, or truth as a 2."""
    message, content = MESSAGES[sample.kafka_class], bytearray(sample.data)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    fields = read_or_refused(message, sample.version, bytes(content))
    if fields is not None:
        written = write_message(message, sample.version, fields)
        again, position = read_message(message, sample.version, written)
        assert position == len(written)
        assert write_message(message, sample.version, again) == written
        assert repr(again) == repr(fields)  # not a number equals nothing


def read_or_refused(message: Message, version: int, data: bytes) -> dict[str, Any] | None:
    try:
        return read_message(message, version, data)[0]
    except SchemaError:
        return None


@given(st.integers(0, 2**32 - 1))
def test_varints(value: int) -> None:
    from txnkafka.wire.scalars import write_uvarint

    out = bytearray()
    write_uvarint(out, value)
    assert scalars.read_uvarint(bytes(out), 0, len(out)) == (value, len(out))
    assert len(out) == max(1, -(-value.bit_length() // 7))
