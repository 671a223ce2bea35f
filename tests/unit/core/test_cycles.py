"""Exporters of buffers in reference cycles, which the garbage collector breaks in any order."""

from __future__ import annotations

import gc
import os
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import txnkafka._core
from tests.models.builder import Batch, PlainRecord
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import decode_batches
from txnkafka._core.mapping import Mapping
from txnkafka._core.record_input import InputRecords
from txnkafka._core.scan import BatchIndex, scan
from txnkafka._core.text import TextWriter

RECORDS = [PlainRecord(b"key", b"value", 7, [(b"h", b"x")]), PlainRecord(None, None, 8, [(b"h", None)])]
LOG = Batch(records=RECORDS).encode()
COPIES = [
    *("offsets", "timestamps", "key_offsets", "key_data", "key_validity"),
    *("value_offsets", "value_data", "value_validity", "header_offsets", "header_key_offsets"),
    *("header_key_data", "header_value_offsets", "header_value_data", "header_value_validity"),
    *("run_ends", "run_leader_epochs", "run_timestamp_types"),
]
VIEWS = ["key_positions", "key_lengths", "value_positions", "value_lengths"]
ENTRIES = [*scan(LOG)[0]._fields[:4], "record_count", *scan(LOG)[0]._fields[5:]]


class Columns(RecordColumns):
    """A subclass has a dictionary, so an arena can be part of a cycle itself, and weak references."""


def in_a_dictionary(held: object) -> None:
    cycle = {"held": held}
    cycle["cycle"] = cycle


def in_a_traceback(held: object) -> None:
    try:
        raise ValueError(held)
    except ValueError as error:
        kept = error  # noqa: F841, the frame holds the error, whose traceback holds the frame


def in_a_list_of_its_exporter(held: memoryview) -> None:
    cycle: list[object] = [held.obj, held]
    cycle.append(cycle)


CYCLES = [in_a_dictionary, in_a_traceback, in_a_list_of_its_exporter]
cycles = pytest.mark.parametrize("cycle", CYCLES)


@pytest.fixture(autouse=True)
def _only_own_garbage() -> None:
    gc.collect()
    gc.freeze()  # else each collection of a test walks all objects of the tests before


def filled(*, views: bool = False) -> Columns:
    columns = Columns(headers=True, views=views)
    assert decode_batches(LOG, scan(LOG), b"\1", 0, 1, columns) == 1
    return columns


@cycles
@pytest.mark.parametrize("name", COPIES + VIEWS)
def test_a_column_in_a_cycle_is_released(name: str, cycle: Callable[[Any], None]) -> None:
    columns = filled(views=name in VIEWS)
    cycle(getattr(columns, name))
    assert columns.in_use
    gc.collect()
    assert not columns.in_use
    columns.reset()


@pytest.mark.parametrize("name", COPIES)
def test_an_arena_that_holds_its_own_column_is_freed(name: str) -> None:
    columns: Any = filled()
    columns.column = getattr(columns, name)
    freed = weakref.ref(columns)
    del columns
    gc.collect()
    assert freed() is None


@cycles
@pytest.mark.parametrize("name", ENTRIES)
def test_a_column_of_a_batch_index_in_a_cycle_is_released(name: str, cycle: Callable[[Any], None]) -> None:
    index = scan(LOG)
    cycle(getattr(index, name))
    with pytest.raises(BufferError):
        index.extend(BatchIndex())
    gc.collect()
    index.extend(BatchIndex())


@cycles
def test_a_piece_of_text_in_a_cycle_is_released(cycle: Callable[[Any], None]) -> None:
    columns, writer = filled(), TextWriter("orders", 0)
    piece: Any
    for piece in writer.json_lines(columns):
        cycle(piece)
    first = piece.obj
    del piece
    gc.collect()
    written = [text.obj for _ in range(2) for text in writer.json_lines(columns)]
    assert first in written, "the writer does not use the memory of the released piece again"
    assert not columns.in_use


@pytest.mark.parametrize("cycle", CYCLES[:2])
def test_an_unfinished_iterator_of_text_in_a_cycle_ends_its_use_of_the_columns(
    cycle: Callable[[Any], None],
) -> None:
    columns = filled()
    iterator = TextWriter("orders", 0).json_lines(columns)
    next(iterator)
    cycle(iterator)
    del iterator
    assert columns.in_use
    gc.collect()
    assert not columns.in_use


@cycles
def test_a_mapped_file_in_a_cycle_is_closed(cycle: Callable[[Any], None], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(LOG)
    with path.open("rb") as file:
        free = os.dup(file.fileno())
        os.close(free)
        mapping = Mapping(file.fileno(), len(LOG))
        assert os.fstat(free).st_ino == path.stat().st_ino
        cycle(mapping.read(0, 10))
        del mapping
        gc.collect()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(free)


@pytest.mark.parametrize("cycle", CYCLES[:2])
def test_records_to_encode_in_a_cycle_release_their_buffers(cycle: Callable[[Any], None]) -> None:
    value = bytearray(b"value")
    cycle(InputRecords([(None, value, 7)]))
    with pytest.raises(BufferError):
        value.append(0)
    gc.collect()
    value.append(0)


def test_an_exporter_cannot_be_made_without_its_owner() -> None:
    column: Any = filled().offsets
    entries: Any = scan(LOG).base_offset
    for exporter in (column.obj, entries.obj):
        with pytest.raises(TypeError):
            type(exporter)()
        with pytest.raises(TypeError):
            type(exporter)(None, b"q")


def test_every_exporter_of_the_core_is_tested_here() -> None:
    folder = Path(txnkafka._core.__path__[0])
    found = {
        name
        for source in folder.glob("*.pyx")
        for name, body in re.findall(r"^cdef class (\w+).*\n((?:[ \n].*\n|\n)*)", source.read_text(), re.M)
        if "__getbuffer__" in body
    }
    assert found == {"ColumnBuffer", "EntryColumn", "Mapping", "Piece"}
