"""Text of some of the records in columns, whose lines equal those of the whole, and of large records."""

from __future__ import annotations

import csv
import io

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.unit.core.test_text import PIECE_BYTES, columns_of
from txnkafka._core.text import TextWriter

BATCHES = [
    Batch(records=[PlainRecord(b"k", b"line\n%d" % i) for i in range(first, first + 3)], base_offset=first)
    for first in (0, 3, 6)
]
BATCHES[1].partition_leader_epoch = 4


@pytest.mark.parametrize("start", range(10))
@pytest.mark.parametrize("stop", [*range(10), None])
def test_any_range(start: int, stop: int | None) -> None:
    columns, writer = columns_of(*BATCHES), TextWriter("t", 0)
    lines = b"".join(writer.json_lines(columns)).splitlines()
    rows = list(csv.reader(io.StringIO(b"".join(writer.csv_rows(columns)).decode(), newline="")))
    if start > (9 if stop is None else stop):
        with pytest.raises(IndexError, match=f"records {start} to {stop} of 9"):
            writer.json_lines(columns, start, stop)
        return
    assert b"".join(writer.json_lines(columns, start, stop)).splitlines() == lines[start:stop]
    text = b"".join(writer.csv_rows(columns, start, stop)).decode()
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 10), (10, None)])
def test_what_is_not_there(start: int, stop: int | None) -> None:
    with pytest.raises(IndexError, match="of 9"):
        TextWriter("t", 0).csv_rows(columns_of(*BATCHES), start, stop)


def test_columns_reset_before_the_lines_are_written() -> None:
    columns = columns_of(*BATCHES)
    lines = TextWriter("t", 0).json_lines(columns, 2, 9)
    columns.reset()
    assert list(lines) == []


@pytest.mark.parametrize("control", [b"\x00", b"\x08", b"\x0c", b"\r", b"\x7f", b"\xd8\x9c", b"\xe2\x80\xae"])
def test_a_large_value_of_controls_fits_its_piece_on_a_terminal(control: bytes) -> None:
    """A large line gets memory of its exact bound; each of these bytes becomes six on a terminal."""
    value = control * (PIECE_BYTES // len(control))
    columns = columns_of(Batch(records=[PlainRecord(None, value)]))
    (piece,) = (bytes(each) for each in TextWriter("t", 0, terminal=True).csv_rows(columns))
    shown = "".join(f"\\u{ord(each):04x}" for each in value.decode())
    assert piece.decode().split(",")[6] == f'"{shown}"'
