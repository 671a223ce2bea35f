"""The arena: its buffers, and that no buffer in use is overwritten."""

from __future__ import annotations

import gzip
import threading

import pytest

from tests.models.builder import Batch, PlainRecord, legacy_entry
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import decode_batches
from txnkafka._core.legacy import decode_legacy
from txnkafka._core.scan import scan
from txnkafka.record.compression import Decompressor

RECORDS = [
    PlainRecord(b"key", b"value", 7, [(b"h", b"x"), (b"", None), (b"h", b"")]),
    PlainRecord(None, b"", 8),
    PlainRecord(b"", None, 9, [(b"i", b"y")]),
]


def fill(columns: RecordColumns, records: list[PlainRecord] = RECORDS) -> bytes:
    data = Batch(records=records, base_offset=10, partition_leader_epoch=4).encode()
    assert decode_batches(data, scan(data), b"\1", 0, 1, columns) == 1
    return data


def values(buffer: object) -> list[int]:
    return memoryview(buffer).tolist()  # type: ignore[arg-type]


def test_copies_have_arrows_layout() -> None:
    columns = RecordColumns(headers=True)
    fill(columns)
    assert len(columns) == 3
    assert values(columns.offsets) == [10, 11, 12]
    assert values(columns.timestamps) == [7, 8, 9]
    assert values(columns.key_offsets) == [0, 3, 3, 3]
    assert bytes(columns.key_data) == b"key"
    assert columns.key_null_count == 1
    assert values(columns.key_validity)[0] & 0b111 == 0b101
    assert values(columns.value_offsets) == [0, 5, 5, 5]
    assert values(columns.value_validity)[0] & 0b111 == 0b011
    assert values(columns.header_offsets) == [0, 3, 3, 4]
    assert bytes(columns.header_key_data) == b"hhi"
    assert values(columns.header_key_offsets) == [0, 1, 1, 2, 3]
    assert bytes(columns.header_value_data) == b"xy"
    assert columns.header_value_null_count == 1
    assert values(columns.header_value_validity)[0] & 0b1111 == 0b1101
    assert values(columns.run_ends) == [3]
    assert values(columns.run_leader_epochs) == [4]
    assert values(columns.run_timestamp_types) == [0]


def test_no_bitmap_where_nothing_is_null() -> None:
    columns = RecordColumns(headers=True)
    fill(columns, [PlainRecord(b"", b"")])
    assert columns.key_validity is None
    assert columns.value_validity is None
    assert columns.header_value_validity is None


def test_views_point_into_the_bytes() -> None:
    columns = RecordColumns(views=True)
    data = fill(columns)
    starts, lengths = values(columns.value_positions), values(columns.value_lengths)
    assert [None if n < 0 else data[at : at + n] for at, n in zip(starts, lengths, strict=True)] == [
        b"value",
        b"",
        None,
    ]
    assert values(columns.key_lengths) == [3, -1, 0]
    assert data[values(columns.key_positions)[0] :].startswith(b"key")


def test_memory_with_readers_is_not_overwritten() -> None:
    columns = RecordColumns()
    fill(columns)
    view = memoryview(columns.value_data)
    assert columns.in_use
    with pytest.raises(BufferError, match="release the buffers or use other columns"):
        columns.reset()
    with pytest.raises(BufferError, match="release the buffers or use other columns"):
        fill(columns)
    assert bytes(view) == b"value"
    view.release()
    assert not columns.in_use
    columns.reset()
    assert len(columns) == 0


def test_a_buffer_keeps_its_arena_alive() -> None:
    columns = RecordColumns()
    fill(columns)
    view = memoryview(columns.value_data)
    del columns
    assert bytes(view) == b"value"


def test_nulls_are_forgotten_by_reset() -> None:
    columns = RecordColumns(headers=True)
    fill(columns)
    columns.reset()
    fill(columns, [PlainRecord(b"a", b"b", 0, [(b"c", b"d")])] * 3)
    assert (columns.key_null_count, columns.value_null_count, columns.header_value_null_count) == (0, 0, 0)
    assert columns.key_validity is None
    fill(columns, [PlainRecord(None, b"x")])
    assert values(columns.key_validity)[0] & 0b1111 == 0b0111


def test_buffers_are_read_only() -> None:
    columns = RecordColumns()
    fill(columns)
    assert memoryview(columns.offsets).readonly


def test_the_wrong_form_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="decode with views=True"):
        _ = RecordColumns().key_positions
    with pytest.raises(TypeError, match="decode with views=False"):
        _ = RecordColumns(views=True).key_data
    with pytest.raises(TypeError, match="use RecordColumns\\(headers=True\\)"):
        _ = RecordColumns().header_offsets


def test_growth_keeps_what_is_there() -> None:
    columns = RecordColumns(headers=True)
    record = [PlainRecord(None, b"v" * 50, 1, [(b"k", None)])] * 40
    for _ in range(20):
        fill(columns, record)
    assert len(columns) == 800
    assert columns.key_null_count == 800
    assert set(values(columns.key_validity)) == {0}
    assert bytes(columns.value_data) == b"v" * 40_000
    assert values(columns.run_ends) == list(range(40, 801, 40))
    assert columns.nbytes > 40_000


def test_a_column_counts_from_the_moment_it_is_handed_out() -> None:
    columns = RecordColumns()
    fill(columns)
    kept = columns.value_data
    assert columns.in_use
    with pytest.raises(BufferError, match="release the buffers or use other columns"):
        columns.reset()
    with pytest.raises(BufferError, match="release the buffers or use other columns"):
        fill(columns, [PlainRecord(b"k", b"v" * 9000)] * 400)
    assert bytes(memoryview(kept)) == b"value"
    del kept
    assert not columns.in_use


COPIES = [
    "offsets", "timestamps", "key_offsets", "key_data", "key_validity", "value_offsets", "value_data",
    "value_validity", "header_offsets", "header_key_offsets", "header_key_data", "header_value_offsets",
    "header_value_data", "header_value_validity", "run_ends", "run_leader_epochs", "run_timestamp_types",
]  # fmt: skip
VIEWS = ["key_positions", "key_lengths", "value_positions", "value_lengths"]


@pytest.mark.parametrize("name", [*COPIES, *VIEWS])
def test_no_way_leads_to_memory_that_was_filled_again(name: str) -> None:
    """``memoryview.obj`` still exists after the memoryview was released."""
    columns = RecordColumns(headers=True, views=name in VIEWS)
    fill(columns)
    view = getattr(columns, name)
    content, column = bytes(view), view.obj
    view.release()
    again = memoryview(column)
    assert bytes(again) == content
    again.release()
    assert not columns.in_use
    columns.reset()
    fill(columns, [PlainRecord(b"k", b"v" * 9000)] * 400)
    with pytest.raises(BufferError, match="take the column anew"):
        memoryview(column)
    assert not columns.in_use


@pytest.mark.parametrize("name", [*COPIES, *VIEWS])
def test_no_column_is_handed_out_while_the_arena_is_filled(name: str) -> None:
    """Decompressing a wrapper runs foreign code, or lets another thread run."""
    log = b"".join(wrapper(i) for i in range(40))
    index = scan(log)
    columns = RecordColumns(headers=True, views=name in VIEWS)
    old = columns.offsets.obj
    refused = []

    class Looking(Decompressor):
        def append(self, *arguments: object, **options: object) -> tuple[int, int]:
            for look in (lambda: getattr(columns, name), lambda: memoryview(old), lambda: columns.reset()):
                with pytest.raises(BufferError, match=r"filled by another thread|still in use"):
                    look()
                refused.append(name)
            return super().append(*arguments, **options)  # type: ignore[arg-type]

    assert decode_legacy(log, index, b"\1" * 40, 0, 40, columns, Looking()) == 40
    assert len(refused) == 120
    assert len(columns) == 40
    assert columns.offsets.tolist() == list(range(1, 41))
    with pytest.raises(BufferError, match="take the column anew"):
        memoryview(old)


def wrapper(offset: int) -> bytes:
    inner = legacy_entry(0, b"k", bytes(10_000))
    return legacy_entry(offset + 1, None, gzip.compress(inner, 1), attributes=1)


def test_threads_that_look_while_others_fill() -> None:
    """Either the columns can be filled, or a thread reads the result of one filling; never a mixture."""
    columns = RecordColumns()
    letters = b"abcdefgh"
    batches = [Batch(records=[PlainRecord(b"", bytes([letter]) * 5000)] * 300).encode() for letter in letters]
    stop, wrong = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            try:
                values = columns.value_data
            except BufferError:
                continue
            content = bytes(values)
            if content.strip(content[:1]):
                wrong.append(content[:1])
            values.release()

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    filled = 0
    while filled < 10:
        data = batches[filled % len(batches)]
        try:
            columns.reset()
            decode_batches(data, scan(data), b"\1", 0, 1, columns)
        except BufferError:
            continue
        filled += 1
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not columns.in_use
