"""TextWriter, compared with the json, csv and base64 modules, at the edges of its buffers; lifetimes."""

from __future__ import annotations

import csv
import io
import itertools
import json
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.models.builder import Batch, PlainRecord, legacy_entry
from tests.models.text import (
    CSV_HEADER,
    TextRecord,
    base64_line,
    csv_row,
    is_command,
    json_line,
    utf8_as_java,
)
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import decode_batches
from txnkafka._core.legacy import decode_legacy
from txnkafka._core.scan import scan
from txnkafka._core.text import TextWriter
from txnkafka.record.compression import Decompressor
from txnkafka.shown import plain_name

TOPIC, PARTITION = "orders", 3
PIECE_BYTES = 256 * 1024
ENCODINGS = ["utf8", "base64"]


def columns_of(*batches: Batch, headers: bool = True, views: bool = False) -> RecordColumns:
    log = b"".join(batch.encode() for batch in batches)
    index = scan(log)
    columns = RecordColumns(headers=headers, views=views)
    assert decode_batches(log, index, b"\1" * len(index), 0, len(index), columns) == len(index)
    return columns


def expected(*batches: Batch) -> list[TextRecord]:
    return [
        TextRecord(
            batch.base_offset + delta,
            record.timestamp if batch.log_append_time is None else batch.log_append_time,
            0 if batch.log_append_time is None else 1,
            record.key,
            record.value,
            list(record.headers),
            None if batch.partition_leader_epoch < 0 else batch.partition_leader_epoch,
        )
        for batch in batches
        for record, delta in zip(batch.records, batch.deltas(), strict=True)
    ]


def batch_of(values: Sequence[bytes | None]) -> Batch:
    return Batch(records=[PlainRecord(None, value) for value in values])


def json_text(*batches: Batch, encoding: str = "utf8") -> bytes:
    return b"".join(TextWriter(TOPIC, PARTITION, encoding=encoding).json_lines(columns_of(*batches)))


def json_model(*batches: Batch, encoding: str = "utf8") -> bytes:
    return b"".join(json_line(TOPIC, PARTITION, record, encoding) for record in expected(*batches))


def csv_text(*batches: Batch, encoding: str = "utf8", topic: str = TOPIC) -> bytes:
    return b"".join(TextWriter(topic, PARTITION, encoding=encoding).csv_rows(columns_of(*batches)))


def csv_model(*batches: Batch, encoding: str = "utf8", topic: str = TOPIC) -> bytes:
    return b"".join(csv_row(topic, PARTITION, record, encoding) for record in expected(*batches))


# Every kind of byte that has its own treatment, often.
PARTS = ["abcdefgh", '"', "\\", "\n", "\0", "\x7f", "\u00e9", "\u20ac", "\U0001f600", ",", "\r\n"]
DAMAGED = [b"\xed\xa0\x80", b"\xed\xbf", b"\xf0\x9f", b"\xc0", b"\xff"]
content = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(lambda text: text.encode()),
    st.lists(st.sampled_from([*(part.encode() for part in PARTS), *DAMAGED]), max_size=12).map(b"".join),
)
nullable = st.none() | content
int64 = st.integers(-(2**62), 2**62 - 1)
records = st.lists(
    st.builds(
        PlainRecord,
        nullable,
        nullable,
        int64,
        st.lists(st.tuples(content, nullable), max_size=3),
        st.none(),
    ),
    max_size=6,
)
batches = st.builds(
    Batch,
    records=records,
    base_offset=st.integers(0, 2**62),
    partition_leader_epoch=st.integers(-1, 2**31 - 1),
    log_append_time=st.none() | int64,
)


def test_json_line_byte_for_byte() -> None:
    record = PlainRecord(b'k"1', b"a\tb\xff", 1700000000123, [(b"h", b"x"), (b"n", None), (b"b", b"\xfe")])
    assert json_text(Batch(records=[record], base_offset=41, partition_leader_epoch=7)) == (
        b'{"topic":"orders","partition":3,"offset":41,"timestamp":1700000000123,'
        b'"timestamp_type":"CreateTime",'
        b'"key":"k\\"1","value":"YQli/w==","value_encoding":"base64",'
        b'"headers":[["h","x"],["n",null],["b",{"base64":"/g=="}]],"leader_epoch":7}\n'
    )


def test_csv_row_byte_for_byte() -> None:
    record = PlainRecord(b"\xff", b'say "no",\r\nor', -1, [(b"h", b'"')])
    assert csv_text(Batch(records=[record], log_append_time=5)) == (
        b'orders,3,0,5,LogAppendTime,/w==,"say ""no"",\r\nor","[[""h"",""\\""""]]",,base64,\r\n'
    )


@given(st.lists(batches, max_size=4))
def test_json_is_what_the_json_module_writes(log: list[Batch]) -> None:
    for encoding in ENCODINGS:
        assert json_text(*log, encoding=encoding) == json_model(*log, encoding=encoding)


@given(st.lists(batches, max_size=4))
def test_csv_is_what_the_model_writes_and_the_csv_module_reads(log: list[Batch]) -> None:
    for encoding in ENCODINGS:
        text = csv_text(*log, encoding=encoding)
        assert text == csv_model(*log, encoding=encoding)
        rows = list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True))
        assert [row[2] for row in rows] == [str(record.offset) for record in expected(*log)]
        assert all(len(row) == (11 if encoding == "utf8" else 9) for row in rows)


@given(st.lists(nullable))
def test_base64_lines(values: list[bytes | None]) -> None:
    columns = columns_of(Batch(records=[PlainRecord(value, None) for value in values]))
    writer = TextWriter(TOPIC, PARTITION)
    assert b"".join(writer.base64_lines(columns, "key")) == b"".join(map(base64_line, values))
    assert b"".join(writer.base64_lines(columns)) == b"\\N\n" * len(values)


def test_csv_header_names_the_fields() -> None:
    assert next(csv.reader([TextWriter(TOPIC, 0, encoding="base64").csv_header.decode()])) == CSV_HEADER
    assert TextWriter(TOPIC, 0).csv_header.endswith(b",leader_epoch,key_encoding,value_encoding\r\n")


@pytest.mark.parametrize("topic", ['a"b', "a,b", "a\nb", "\u00e9\ud800", ""])
def test_topics_that_kafka_would_not_allow(topic: str) -> None:
    columns = columns_of(batch_of([b""]))
    (line,) = TextWriter(topic, 0).json_lines(columns)
    assert json.loads(bytes(line))["topic"] == plain_name(topic)
    assert csv_text(batch_of([b""]), topic="a,b") == csv_model(batch_of([b""]), topic="a,b")


def test_numbers_at_their_limits() -> None:
    timestamps = [0, -1, 9, 10, 99, 100, -100, 2**63 - 1, -(2**63), *(10**n for n in range(19))]
    nothing = [PlainRecord(None, None)]
    log = [
        Batch(records=nothing, base_offset=10**i, log_append_time=each, partition_leader_epoch=i)
        for i, each in enumerate(timestamps[:19])
    ]
    assert json_text(*log) == json_model(*log)


def test_timestamp_type_of_magic_0() -> None:
    log = legacy_entry(0, b"k", b"v", magic=0)
    columns = RecordColumns(headers=True)
    decode_legacy(log, scan(log), b"\1", 0, 1, columns, Decompressor())
    record = TextRecord(0, -1, -1, b"k", b"v", [], None)
    assert b"".join(TextWriter(TOPIC, 3).json_lines(columns)) == json_line(TOPIC, 3, record, "utf8")


# UTF-8, where a rule changes; `make long` has all pairs and lead bytes
EDGES = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF4]
LEADS = [0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


@pytest.mark.slow
def test_pairs_of_bytes() -> None:
    others = range(256) if LONG else EDGES
    every = [*itertools.product(range(256), others), *itertools.product(others, range(256))]
    pairs = batch_of([bytes(pair) for pair in every])
    assert json_text(pairs) == json_model(pairs)
    assert csv_text(pairs) == csv_model(pairs)


def sequences_at_the_edges() -> list[bytes]:
    leads = range(0xC0, 0x100) if LONG else LEADS
    three = itertools.product(leads, EDGES, EDGES)
    four = itertools.product(range(0xEC, 0xF6), EDGES, EDGES, EDGES)
    return [bytes(each) for each in itertools.chain(three, four)]


@pytest.mark.slow
def test_sequences_of_three_and_four_bytes() -> None:
    values = batch_of(sequences_at_the_edges())
    assert json_text(values) == json_model(values)
    assert csv_text(values) == csv_model(values)


def test_header_names_are_replaced_as_java_does() -> None:
    headers = [(name, None) for name in sequences_at_the_edges()]
    log = Batch(records=[PlainRecord(None, None, 0, headers)])
    assert json_text(log) == json_model(log)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0A", "\ufffdA"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xe0\x80\x80", "\ufffd" * 3),
        (b"\xe2\x82A", "\ufffdA"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        (b"\xc3\xa9\xc3", "\u00e9\ufffd"),
    ],
)
def test_what_java_answered(content: bytes, text: str) -> None:
    assert utf8_as_java(content) == text


@pytest.mark.parametrize("size", range(34))
def test_specials_at_every_place(size: int) -> None:
    for special in (b'"', b"\n", b"\x80", "\u20ac".encode()):
        log = batch_of([b"a" * i + special + b"b" * (size - i) for i in range(size + 1)])
        assert json_text(log) == json_model(log)
        assert csv_text(log) == csv_model(log)


# Pieces


@pytest.mark.slow
@pytest.mark.parametrize("fill", ["\1", '"', "\u20ac", None], ids=["control", "quote", "euro", "binary"])
def test_more_text_than_a_piece_holds(fill: str | None) -> None:
    value = b"\xff" * 100 if fill is None else fill.encode() * 50
    log = Batch(records=[PlainRecord(b"%d" % i, value, i, [(value, value)]) for i in range(2000)])
    for encoding in ENCODINGS:
        writer, columns = TextWriter(TOPIC, PARTITION, encoding=encoding), columns_of(log)
        pieces = [bytes(piece) for piece in writer.json_lines(columns)]
        assert b"".join(pieces) == json_model(log, encoding=encoding)
        assert len(pieces) > 1
        assert all(piece.endswith(b"}\n") and len(piece) <= PIECE_BYTES for piece in pieces)
        assert b"".join(writer.csv_rows(columns)) == csv_model(log, encoding=encoding)


@pytest.mark.slow
@pytest.mark.parametrize("fill", [b"\1", b'"', b"a", b"\xff"], ids=["control", "quote", "letter", "binary"])
@pytest.mark.parametrize("size", [PIECE_BYTES // 6 - 60, PIECE_BYTES - 200, PIECE_BYTES + 200])
def test_records_larger_than_a_piece(fill: bytes, size: int) -> None:
    value = fill * size
    log = batch_of([b"before", value, b"after"])
    assert json_text(log) == json_model(log)
    assert csv_text(log) == csv_model(log)
    headers = Batch(records=[PlainRecord(value, None, 0, [(value, value), (b"", None)])])
    assert (json_text(headers), csv_text(headers)) == (json_model(headers), csv_model(headers))


def test_many_empty_headers() -> None:
    log = Batch(records=[PlainRecord(None, None, 0, [(b"", b"")] * 30_000)])
    assert (json_text(log), csv_text(log)) == (json_model(log), csv_model(log))


def test_nothing_to_write() -> None:
    assert list(TextWriter(TOPIC, 0).json_lines(RecordColumns(headers=True))) == []


# Lifetimes


def large() -> RecordColumns:
    return columns_of(batch_of([b"x" * 1000] * 1000))


def test_pieces_that_are_kept_stay_as_they_are() -> None:
    columns = large()
    writer = TextWriter(TOPIC, 0)
    copies = [bytes(piece) for piece in writer.json_lines(columns)]
    kept = list(writer.json_lines(columns))
    assert all(piece.readonly for piece in kept)
    assert kept == copies
    assert len({bytes(piece[:60]) for piece in kept}) == len(kept) > 3


def test_a_loop_uses_two_buffers() -> None:
    addresses = set()
    for piece in TextWriter(TOPIC, 0).json_lines(large()):
        addresses.add(np.frombuffer(piece, np.uint8).ctypes.data)
    assert len(addresses) == 2


def test_two_texts_of_one_writer_at_a_time() -> None:
    writer, columns = TextWriter(TOPIC, PARTITION), large()
    both = zip(writer.json_lines(columns), writer.csv_rows(columns), strict=False)
    for json_piece, csv_piece in both:
        assert bytes(json_piece[:2]) == b'{"'
        assert bytes(csv_piece[:7]) == b"orders,"


def test_columns_cannot_be_reset_while_text_is_made() -> None:
    columns = large()
    pieces = TextWriter(TOPIC, 0).json_lines(columns)
    next(pieces)
    with pytest.raises(BufferError):
        columns.reset()
    pieces.close()
    columns.reset()
    assert len(columns) == 0


def test_refuses_what_it_cannot_show() -> None:
    log = batch_of([b"v"])
    writer = TextWriter(TOPIC, 0)
    with pytest.raises(TypeError, match="headers"):
        writer.json_lines(columns_of(log, headers=False))
    with pytest.raises(TypeError, match="headers"):
        writer.csv_rows(columns_of(log, headers=False))
    with pytest.raises(TypeError, match="views"):
        writer.json_lines(columns_of(log, views=True))
    with pytest.raises(ValueError, match="encoding"):
        TextWriter(TOPIC, 0, encoding="latin1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="column"):
        writer.base64_lines(columns_of(log), "headers")  # type: ignore[arg-type]
    assert b"".join(writer.base64_lines(columns_of(log, headers=False))) == b"dg==\n"


def test_a_piece_that_is_written_again_is_not_shown() -> None:
    writer, columns = TextWriter(TOPIC, 0), large()
    pieces = writer.json_lines(columns)
    first = next(pieces)
    piece = first.obj
    first.release()
    assert bytes(memoryview(piece)[:2]) == b'{"'
    kept = memoryview(piece)
    content = bytes(kept)
    for _ in pieces:
        assert bytes(kept) == content


def test_threads_that_use_one_writer() -> None:
    writer, columns = TextWriter(TOPIC, 0), large()
    expected = b"".join(map(bytes, writer.json_lines(columns)))
    found: list[bytes] = []

    def write() -> None:
        found.extend(b"".join(map(bytes, writer.json_lines(columns))) for _ in range(5))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20
    columns.reset()


HIDDEN = "\x1b]0;title\x07\r\t\n\x9b31m=cmd\u202e\u2028\u2066\u200f\u061c\x7f\"é€😀"


def test_json_never_contains_terminal_commands() -> None:
    record = PlainRecord(HIDDEN.encode(), HIDDEN.encode(), headers=[(HIDDEN.encode(), HIDDEN.encode())])
    text = json_text(Batch(records=[record]))
    assert not any(is_command(each) for each in text.decode())
    line = json.loads(text)
    assert (line["key"], line["value"], line["headers"]) == (HIDDEN, HIDDEN, [[HIDDEN, HIDDEN]])


def test_csv_is_exact_in_a_file_and_escaped_on_a_terminal() -> None:
    columns = columns_of(Batch(records=[PlainRecord(HIDDEN.encode(), b"\xff")]))
    exact = b"".join(TextWriter("t", 0).csv_rows(columns)).decode()
    assert next(csv.reader(io.StringIO(exact, newline="")))[5] == HIDDEN
    shown = b"".join(TextWriter("a\x1bb", 0, terminal=True).csv_rows(columns)).decode()
    row = next(csv.reader(io.StringIO(shown, newline="")))
    assert row[0] == "a\\x1bb"
    assert row[5] == (
        "\\u001b]0;title\\u0007\\u000d\t\n\\u009b31m=cmd\\u202e\\u2028\\u2066\\u200f\\u061c\\u007f\"é€😀"
    )
    assert row[6] == "/w==", "bytes that are no UTF-8 are base64 there, too"


def test_a_topic_that_is_no_utf_8() -> None:
    writer, columns = TextWriter("bad\udcff", 0), columns_of(Batch(records=[PlainRecord(b"k", b"v")]))
    assert b'"topic":"bad\\\\xff"' in b"".join(writer.json_lines(columns))
    assert b"".join(writer.csv_rows(columns)).startswith(b"bad\\xff,0,")
