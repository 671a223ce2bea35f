"""Generated source: what it looks like, when it is made, what a traceback shows of it."""

from __future__ import annotations

import traceback
from textwrap import indent

import pytest

from txnkafka.wire.codegen import reader_source, writer_source
from txnkafka.wire.codegen.compiled import reader_of, writer_of
from txnkafka.wire.codegen.fields import array, int16, int32, message, string, struct, uuid
from txnkafka.wire.codegen.generated import run_source
from txnkafka.wire.codegen.reader_source import StructReader, VersionReaders
from txnkafka.wire.codegen.writer_source import StructWriter, VersionWriters
from txnkafka.wire.messages.end_txn import EndTxnResponse
from txnkafka.wire.schema import INT64


@message
class Inner:
    number: int = int16()
    name: str | None = string(nullable="1+")


@message
class Outer:
    first: int = int32()
    topic_id: str = uuid("1+")
    inner: tuple[Inner, ...] = array(Inner)
    old: int = int32("0", default=-1)
    numbers: tuple[int, ...] = array(INT64, "2+", nullable="2+", tag=3)
    one: Inner = struct(Inner, "2+", tag=0)


READER = """\
def read_Outer(data, position, end, left):
    if position + 20 > end:
        raise short_run(run_0, position, end)
    first, topic_id = unpack_0(data, position)
    position += 20
    topic_id = uuid_text(topic_id)
    inner, position = read_inner(data, position, end, left)
    tagged, position = read_tagged_fields(data, position, end, left, tags)
    return Outer(
        first=first,
        topic_id=topic_id,
        inner=inner,
        **tagged,
    ), position
"""
WRITER = """\
def write_Outer(out, gather, value):
    if value.old != old_default:
        raise unsupported("old", value.old)
    try:
        out += pack_0(value.first, uuid_bytes(value.topic_id, "topic_id"))
    except number_errors:
        raise wrong_number(numbers_0, value) from None
    write_inner(out, gather, value.inner)
    tagged = []
    if value.one != one_default:
        tagged.append((0, write_one, value.one))
    if value.numbers is None or len(value.numbers):
        tagged.append((3, write_numbers, value.numbers))
    write_tagged_fields(out, tagged)
"""


def test_the_source_of_a_reader() -> None:
    assert StructReader(VersionReaders(2, flexible=True), Outer).source == READER


def test_the_source_of_a_writer() -> None:
    assert StructWriter(VersionWriters(2, flexible=True), Outer).source == WRITER


def test_the_examples_of_the_documentation_are_the_source() -> None:
    reader = StructReader(VersionReaders(5, flexible=True), EndTxnResponse).source
    writer = StructWriter(VersionWriters(4, flexible=True), EndTxnResponse).source
    assert indent(reader, "    ") in (reader_source.__doc__ or "")
    assert indent(writer, "    ") in (writer_source.__doc__ or "")


def test_a_version_is_made_once() -> None:
    assert reader_of(Outer, 2, True) is reader_of(Outer, 2, True)
    assert reader_of(Outer, 2, True) is not reader_of(Outer, 1, False)
    assert writer_of(Outer, 0, False) is writer_of(Outer, 0, False)


def test_what_is_written_reads_as_it_was() -> None:
    one, inner = Inner(number=3, name=None), (Inner(number=1), Inner(name="a"))
    value = Outer(first=5, inner=inner, numbers=(1, 2), one=one)
    out = bytearray()
    writer_of(Outer, 2, True)(out, [], value)
    assert reader_of(Outer, 2, True)(memoryview(out), 0, len(out), [100]) == (value, len(out))


def test_a_field_behind_the_last_version_is_not_read() -> None:
    out = bytearray()
    writer_of(Outer, 0, False)(out, [], Outer(first=5, old=6))
    assert out.hex() == "00000005" + "00000000" + "00000006"
    assert reader_of(Outer, 0, False)(memoryview(out), 0, len(out), [100])[0] == Outer(first=5, old=6)


def test_a_traceback_shows_the_line_and_its_fields() -> None:
    with pytest.raises(AttributeError) as caught:
        writer_of(Outer, 2, True)(bytearray(), [], Outer(inner=("x",)))  # type: ignore[arg-type]
    lines = traceback.format_tb(caught.value.__traceback__)
    assert "<write_Outer: Outer version 2>" in "".join(lines)
    assert "write_inner(out, gather, value.inner)" in "".join(lines)
    assert "out += pack_0(value.number)" in lines[-1]


def test_source_runs_with_the_names_that_it_is_given() -> None:
    assert run_source("def one():\n    return two\n", "one", "a test", {"two": 2})() == 2
