"""The types of Kafka's protocol one by one: values, nulls, lengths that lie, tagged fields, versions."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS, read_message
from txnkafka.wire.scalars import read_uvarint
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

PLAIN, FLEXIBLE = 0, 1


def message_of(*fields: Field) -> Message:
    return Message("sample", "0-1", flexible="1").of(*fields)


def read_one(kind: Type, version: int, data: bytes, nullable: str = "") -> Any:
    fields, position = read_message(message_of(Field("a", kind, nullable=nullable)), version, data)
    assert position == len(data)
    return fields["a"]


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (BOOL, "00", False),
        (BOOL, "02", True),
        (INT8, "80", -128),
        (INT16, "8000", -(2**15)),
        (INT32, "80000000", -(2**31)),
        (INT64, "ffffffffffffffff", -1),
        (UINT16, "ffff", 65535),
        (FLOAT64, "bff8000000000000", -1.5),
        (UUID, "00" * 16, ZERO_UUID),
        (UUID, "fb" * 16, "-_v7-_v7-_v7-_v7-_v7-w"),
    ],
)
def test_types_of_fixed_size(kind: Type, data: str, value: Any) -> None:
    assert read_one(kind, PLAIN, bytes.fromhex(data)) == value
    assert read_one(kind, FLEXIBLE, bytes.fromhex(data) + b"\0") == value


@pytest.mark.parametrize(
    ("kind", "plain", "compact", "value"),
    [
        (STRING, "0000", "01", ""),
        (STRING, "0003c3bc78", "04c3bc78", "üx"),
        (BYTES, "00000000", "01", b""),
        (BYTES, "00000002ff00", "03ff00", b"\xff\0"),
        (RECORDS, "00000002ff00", "03ff00", b"\xff\0"),
        (Array(INT16), "00000000", "01", []),
        (Array(INT16), "0000000200010002", "0300010002", [1, 2]),
        (Array.of(Field("b", INT8)), "000000020102", "0301000200", [{"b": 1}, {"b": 2}]),
        (Struct.of(Field("b", INT8)), "01", "0100", {"b": 1}),
    ],
)
def test_types_with_a_length(kind: Type, plain: str, compact: str, value: Any) -> None:
    assert read_one(kind, PLAIN, bytes.fromhex(plain)) == value
    assert read_one(kind, FLEXIBLE, bytes.fromhex(compact + "00")) == value


def test_the_longest_string() -> None:
    text = "x" * 32767
    assert read_one(STRING, PLAIN, b"\x7f\xff" + text.encode()) == text
    assert read_one(STRING, FLEXIBLE, b"\x80\x80\x02" + text.encode() + b"\0") == text


@pytest.mark.parametrize(
    ("kind", "plain", "compact"),
    [
        (STRING, "ffff", "00"),
        (BYTES, "ffffffff", "00"),
        (RECORDS, "ffffffff", "00"),
        (Array(INT8), "ffffffff", "00"),
        (Struct.of(Field("b", INT8)), "ff", "ff"),
    ],
)
def test_null_only_where_the_version_allows_it(kind: Type, plain: str, compact: str) -> None:
    assert read_one(kind, PLAIN, bytes.fromhex(plain), nullable="0+") is None
    assert read_one(kind, FLEXIBLE, bytes.fromhex(compact + "00"), nullable="0+") is None
    assert read_one(kind, FLEXIBLE, bytes.fromhex(compact + "00"), nullable="1") is None
    if not isinstance(kind, Struct):
        with pytest.raises(SchemaError, match=r"^a: is null, which this version does not allow \(byte 0\)$"):
            read_one(kind, PLAIN, bytes.fromhex(plain), nullable="1")


def test_records_are_a_view_where_a_view_is_given() -> None:
    data = memoryview(bytes.fromhex("00000002ff00"))
    fields, _ = read_message(message_of(Field("a", RECORDS)), PLAIN, data)
    assert isinstance(fields["a"], memoryview)
    assert fields["a"].obj is data.obj


def test_a_message_can_begin_in_the_middle() -> None:
    assert read_message(message_of(Field("a", INT16)), PLAIN, b"xx\x01\x02yy", 2) == ({"a": 258}, 4)


@pytest.mark.parametrize(
    ("kind", "version", "data", "reason"),
    [
        (INT64, PLAIN, "00" * 7, "a: needs 8 bytes, 7 are left (byte 0)"),
        (UUID, PLAIN, "00" * 15, "a: needs 16 bytes, 15 are left (byte 0)"),
        (STRING, PLAIN, "fffe", "a: length -2 is negative (byte 0)"),
        (STRING, PLAIN, "000461", "a: needs 4 bytes, 1 are left (byte 2)"),
        (STRING, PLAIN, "000361ff62", "a: string is not UTF-8 (byte 3)"),
        (STRING, FLEXIBLE, "818002" + "61" * 32768, "a: string has 32768 bytes, more than 32767 (byte 3)"),
        (BYTES, PLAIN, "7fffffff", "a: needs 2147483647 bytes, 0 are left (byte 4)"),
        (BYTES, FLEXIBLE, "ffffffff0f", "a: needs 4294967294 bytes, 0 are left (byte 5)"),
        (BYTES, FLEXIBLE, "ffffffff1f", "a: varint has more than 32 bits (byte 0)"),
        (BYTES, FLEXIBLE, "808080808001", "a: varint has more than 5 bytes (byte 0)"),
        (BYTES, FLEXIBLE, "8080", "a: varint is cut off (byte 0)"),
        (
            Array(INT64),
            PLAIN,
            "7fffffff" + "00" * 16,
            "a: 2147483647 elements do not fit into the 16 bytes left",
        ),
        (
            Array(INT64),
            PLAIN,
            "00000003" + "00" * 16,
            "a: 3 elements do not fit into the 16 bytes left (byte 0)",
        ),
        (
            Array(Array(INT64)),
            PLAIN,
            "00000002" + "00000001" + "00" * 8 + "00000002" + "00" * 8,
            "a[1]: 2 elements do not fit into the 8 bytes left (byte 16)",
        ),
        (Array(STRING), PLAIN, "000000020001610003", "a[1]: needs 3 bytes, 0 are left (byte 9)"),
        (Array.of(Field("b", STRING)), PLAIN, "000000010005", "a[0].b: needs 5 bytes, 0 are left (byte 6)"),
    ],
)
def test_what_does_not_follow_the_table_is_refused(kind: Type, version: int, data: str, reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read_one(kind, version, bytes.fromhex(data))
    assert str(caught.value).startswith(reason)


def test_a_struct_that_may_be_null_says_whether_it_is_there() -> None:
    kind = Struct.of(Field("b", INT8))
    assert read_one(kind, PLAIN, b"\x01\x07", nullable="0+") == {"b": 7}
    with pytest.raises(SchemaError, match=r"a struct that may be null begins with 1 or -1, not 0"):
        read_one(kind, PLAIN, b"\x00\x07", nullable="0+")
    tagged = message_of(Field("a", kind, tag=0, nullable="0+"))
    assert read_message(tagged, FLEXIBLE, b"\x01\x00\x01\x00")[0] == {"a": None}
    assert read_message(tagged, FLEXIBLE, b"\x01\x00\x03\x01\x07\x00")[0] == {"a": {"b": 7}}
    with pytest.raises(SchemaError, match=r"a: a struct that may be null begins with 1 or 0, not -1"):
        read_message(tagged, FLEXIBLE, b"\x01\x00\x01\xff")


TAGGED = message_of(
    Field("a", INT8),
    Field("b", INT16, "1", tag=2, default=-5),
    Field("c", Array(INT8), "1", tag=4),
    Field("d", STRING, "1", tag=5, nullable="1", default=None),
    Field("e", STRING, "1", tag=6),
    Field("f", UUID, "1", tag=7),
    Field("g", BOOL, "1", tag=8),
    Field("h", Struct.of(Field("i", FLOAT64), Field("j", BYTES), Field("k", INT8, "0")), "1", tag=9),
)
DEFAULTS: dict[str, Any] = {
    "b": -5,
    "c": [],
    "d": None,
    "e": "",
    "f": ZERO_UUID,
    "g": False,
    "h": {"i": 0.0, "j": b""},
}


def test_tagged_fields_have_their_default_where_they_are_absent() -> None:
    first, _ = read_message(TAGGED, FLEXIBLE, b"\x01\x00")
    first["c"].append("changed by a caller")
    assert read_message(TAGGED, FLEXIBLE, b"\x01\x00") == ({"a": 1} | DEFAULTS, 2)
    assert read_message(TAGGED, PLAIN, b"\x01") == ({"a": 1}, 1)


def test_tagged_fields_are_read_and_unknown_ones_kept() -> None:
    data = bytes.fromhex("01040000020200070301ff0a00")
    fields, position = read_message(TAGGED, FLEXIBLE, data)
    assert fields == {"a": 1} | DEFAULTS | {
        "b": 7,
        UNKNOWN_TAGGED_FIELDS: [(0, b""), (3, b"\xff"), (10, b"")],
    }
    assert position == len(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("01020202000702020007", "tag 2 follows tag 2 (byte 6)"),
        ("0102030002020007", "tag 2 follows tag 3 (byte 4)"),
        ("01010203000700", "b: 1 bytes are left over in the tagged field (byte 6)"),
        ("010102010007", "b: needs 2 bytes, 1 are left (byte 4)"),
        ("01010009", "needs 9 bytes, 0 are left (byte 4)"),
        ("01ffffffff0f", "4294967295 tagged fields do not fit into the 0 bytes left (byte 1)"),
        ("01", "varint is cut off (byte 1)"),
    ],
)
def test_tagged_fields_that_lie_are_refused(data: str, reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read_message(TAGGED, FLEXIBLE, bytes.fromhex(data))
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("versions", "inside"),
    [("0+", {0, 1, 2, 3, 4}), ("2+", {2, 3, 4}), ("1-3", {1, 2, 3}), ("2", {2}), ("", set())],
)
def test_version_ranges(versions: str, inside: set[int]) -> None:
    assert {version for version in range(-1, 5) if in_versions(version, versions)} == inside


def test_fields_come_and_go_with_the_version() -> None:
    message = Message("sample", "0-2").of(
        Field("a", INT8, "0-1"), Field("b", INT8, "1+"), Field("c", INT8, "1")
    )
    assert [read_message(message, version, b"\x01\x02\x03") for version in range(3)] == [
        ({"a": 1}, 1),
        ({"a": 1, "b": 2, "c": 3}, 3),
        ({"b": 1}, 1),
    ]


def test_an_error_survives_being_sent_to_another_process() -> None:
    error = SchemaError("reason", 3).inside("b").inside("[2]").inside("a")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.position, again.path) == ("a[2].b: reason (byte 3)", 3, "a[2].b")
    assert isinstance(again, ValueError)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_varints_of_every_size(value: int, behind: bytes) -> None:
    encoded, rest = bytearray(), value
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    data = bytes(encoded) + behind
    assert read_uvarint(data, 0, len(data)) == (value, len(encoded))
    with pytest.raises(SchemaError, match="cut off"):
        read_uvarint(data, 0, len(encoded) - 1)


NESTED = message_of(
    Field(
        "a",
        Array.of(Field("b", Array(STRING)), Field("c", BYTES, nullable="0+"), Field("d", UUID, "1", tag=0)),
    ),
    Field("e", Struct.of(Field("f", INT32)), "1", tag=1, nullable="1"),
)


@pytest.mark.parametrize("version", [PLAIN, FLEXIBLE])
@given(data=st.binary(max_size=60))
def test_random_bytes_read_within_their_end_or_are_refused(version: int, data: bytes) -> None:
    try:
        position = read_message(NESTED, version, data)[1]
    except SchemaError as error:
        position = error.position
    assert 0 <= position <= len(data)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 2**31 - 1) + b"\0" * 8192,
        struct.pack(">ii", 1, 2**31 - 1) + b"\0" * 8192,
        struct.pack(">iii", 1, 0, 2**31 - 1) + b"\0" * 8192,
    ],
)
def test_an_announced_size_alone_costs_no_memory(data: bytes) -> None:
    with pytest.raises(SchemaError):
        read_message(NESTED, PLAIN, data)
    tracemalloc.start()
    with pytest.raises(SchemaError):
        read_message(NESTED, PLAIN, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(data)


def varint(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14])


def test_memory_is_a_small_multiple_of_dense_input() -> None:
    tags = range(10, 8_000)
    data = b"\x01" + varint(len(tags)) + b"".join(varint(tag) + b"\0" for tag in tags)
    tracemalloc.start()
    fields, _ = read_message(NESTED, FLEXIBLE, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(fields[UNKNOWN_TAGGED_FIELDS]) == len(tags)
    assert peak < 64 * len(data)
