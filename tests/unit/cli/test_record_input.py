"""Lines and JSON as records."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.cli.record_input import InputRecord, Lines, json_record, pieces, unescaped
from txnkafka.errors import KafkaError


@given(
    st.lists(st.binary(max_size=6)),
    st.sampled_from([b"\n", b"\0", b"ab", b"aab", b"||"]),
    st.lists(st.integers(1, 5), min_size=1),
)
def test_pieces_do_not_depend_on_how_they_arrive(
    content: list[bytes], delimiter: bytes, sizes: list[int]
) -> None:
    """A model reads all at once."""
    whole = delimiter.join(content)
    source, number = io.BytesIO(whole), 0

    def read(_: int) -> bytes:
        nonlocal number
        number += 1
        return source.read(sizes[number % len(sizes)])

    found = [piece for some in pieces(read, delimiter) for piece in some]
    expected = whole.split(delimiter)
    assert found == (expected if expected[-1] else expected[:-1])


def test_pieces_come_as_soon_as_they_are_there() -> None:
    chunks = [b"a\nb", b"c\n", b""]
    parts = pieces(lambda _: chunks.pop(0), b"\n")
    assert next(parts) == [b"a"]
    assert chunks == [b"c\n", b""]
    assert next(parts) == [b"bc"]


@pytest.mark.parametrize(
    ("lines", "line", "record"),
    [
        (Lines(), b"a:b", (None, b"a:b")),
        (Lines(), b"", (None, b"")),
        (Lines(has_nulls=True), b"", (None, None)),
        (Lines(b":"), b"a:b:c", (b"a", b"b:c")),
        (Lines(b":"), b"abc", (None, b"abc")),
        (Lines(b":", b"k"), b"abc", (b"k", b"abc")),
        (Lines(b":"), b":", (b"", b"")),
        (Lines(b":", None, True), b":", (None, None)),
        (Lines(b"::"), b"a:::b", (b"a", b":b")),
    ],
)
def test_a_line_becomes_key_and_value(
    lines: Lines, line: bytes, record: tuple[bytes | None, bytes | None]
) -> None:
    assert lines.record(line) == record


def test_escapes_in_delimiters() -> None:
    assert unescaped(r"\t") == b"\t"
    assert unescaped(r"\x00%k\\") == b"\0%k\\"
    with pytest.raises(ValueError, match="unknown escape"):
        unescaped(r"\q")


@pytest.mark.parametrize(
    ("row", "record"),
    [
        ({}, InputRecord(None, None)),
        ({"key": "a", "value": None}, InputRecord(b"a", None)),
        ({"value": "AP8=", "value_encoding": "base64"}, InputRecord(None, b"\0\xff")),
        ({"value": {"n": 1}}, InputRecord(None, b'{"n":1}')),
        (
            {"headers": [["a", "b"], ["c", None], ["d", {"base64": "/w=="}]], "partition": 3, "timestamp": 9},
            InputRecord(None, None, (("a", b"b"), ("c", None), ("d", b"\xff")), 9),
        ),
    ],
)
def test_json_becomes_a_record(row: dict[str, Any], record: InputRecord) -> None:
    assert json_record(json.dumps(row).encode(), 1) == record


@pytest.mark.parametrize(
    ("line", "reason"),
    [(b"{", "Expecting"), (b"[]", "it is no object"), (b'{"key":"?","key_encoding":"base64"}', "base64"),
     (b'{"headers":[1]}', "")],
)  # fmt: skip
def test_other_lines_are_named(line: bytes, reason: str) -> None:
    with pytest.raises(KafkaError, match=f"^line 7 is no record in JSON: .*{reason}"):
        json_record(line, 7)
