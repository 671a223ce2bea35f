"""Records are copied by a mask: the same records as without it, and memory in use is not touched."""

from __future__ import annotations

import random
import threading

import pytest

from tests.models.builder import Batch, PlainRecord
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import decode_batches
from txnkafka._core.filter import filter_records
from txnkafka._core.scan import scan
from txnkafka.record.batch import records_of


def some_bytes(choice: random.Random) -> bytes | None:
    return choice.choice([None, b"", choice.randbytes(choice.randrange(300))])


def some_record(choice: random.Random) -> PlainRecord:
    name = choice.randbytes(choice.randrange(3)).hex().encode()
    headers = [(name, some_bytes(choice))] * choice.randrange(3)
    return PlainRecord(some_bytes(choice), some_bytes(choice), choice.randrange(1000), headers)


def filled(choice: random.Random, *, views: bool = False) -> RecordColumns:
    """Decode a few batches with different epochs."""
    columns = RecordColumns(headers=True, views=views)
    offset = 0
    for epoch in range(3):
        records = [some_record(choice) for _ in range(choice.randrange(1, 40))]
        data = Batch(records=records, base_offset=offset, partition_leader_epoch=epoch).encode()
        decode_batches(data, scan(data), b"\1", 0, 1, columns)
        offset += len(records) + 5
    return columns


@pytest.mark.parametrize("seed", range(50))
def test_the_selected_records_are_those_of_the_source(seed: int) -> None:
    choice = random.Random(seed)
    target = RecordColumns(headers=True)
    for _ in range(3):  # the target is used again
        source = filled(choice)
        share = choice.choice([0, 0.05, 0.5, 1])
        mask = bytes(choice.random() < share for _ in range(len(source)))
        filter_records(source, mask, target)
        wanted = [record for record, selected in zip(records_of(source), mask, strict=True) if selected]
        assert list(records_of(target)) == wanted


def test_a_mask_that_changes_meanwhile_selects_what_it_selected_at_one_moment() -> None:
    data = Batch(records=[PlainRecord(b"k", b"v")] * 20_000).encode()
    source, target = RecordColumns(), RecordColumns()
    decode_batches(data, scan(data), b"\1", 0, 1, source)
    mask, done = bytearray(len(source)), threading.Event()

    def flip() -> None:
        ones, zeros = b"\1" * len(source), bytes(len(source))
        while not done.is_set():
            mask[:] = ones
            mask[:] = zeros

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        for _ in range(200):
            filter_records(source, mask, target)
            assert len(target) in (0, len(source))
    finally:
        done.set()
        thread.join()


def test_views_keep_their_positions() -> None:
    source, target = filled(random.Random(1), views=True), RecordColumns(headers=True, views=True)
    mask = bytes(i % 3 == 0 for i in range(len(source)))
    filter_records(source, mask, target)
    for name in ("key_positions", "key_lengths", "value_positions", "value_lengths", "offsets", "timestamps"):
        assert getattr(target, name).tolist() == getattr(source, name).tolist()[::3]


def test_the_memory_is_that_of_the_selected_records() -> None:
    data = Batch(records=[PlainRecord(b"k", bytes(1 << 20), 0) for _ in range(4)]).encode()
    source, target = RecordColumns(), RecordColumns()
    decode_batches(data, scan(data), b"\1", 0, 1, source)
    filter_records(source, b"\0\0\0\0", target)
    assert (len(target), target.nbytes < 100_000) == (0, True)


def test_what_does_not_fit_is_refused() -> None:
    source = filled(random.Random(1))
    for other in (source, RecordColumns(), RecordColumns(headers=True, views=True)):
        with pytest.raises(ValueError, match="other columns of the same form"):
            filter_records(source, bytes(len(source)), other)
    target = RecordColumns(headers=True)
    with pytest.raises(ValueError, match="a mask of 1 bytes"):
        filter_records(source, b"\1", target)
    filter_records(source, b"\1" * len(source), target)
    kept = target.offsets
    with pytest.raises(BufferError):
        filter_records(source, b"\1" * len(source), target)
    assert kept.tolist() == source.offsets.tolist()


def test_columns_say_what_they_contain() -> None:
    assert repr(RecordColumns()) == "<RecordColumns: no records (copies)>"
    columns = filled(random.Random(1), views=True)
    offsets = columns.offsets
    assert repr(columns) == (
        f"<RecordColumns: {len(columns)} records, offsets 0 to {offsets[-1]} (views, with headers)>"
    )
