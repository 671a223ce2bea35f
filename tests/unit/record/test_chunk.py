"""Chunks of a file: which columns they use."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.models.builder import Batch, PlainRecord, legacy_entry, legacy_wrapper
from txnkafka._core import columns
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.errors import CorruptRecordError
from txnkafka.record import chunk
from txnkafka.record.batch import Record, records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

BATCH = Batch(records=[PlainRecord(b"k", b"v")])


def chunks(count: int) -> SelectedBatches:
    data = memoryview(b"".join(Batch(records=BATCH.records, base_offset=i).encode() for i in range(count)))
    index = scan(data)
    return SelectedBatches(lambda at, length: data[at : at + length], index, select(index))


def test_a_loop_that_looks_at_the_last_chunk_gets_two_columns_in_turn() -> None:
    decoder = ChunkDecoder(chunk_bytes=1)
    seen, last = [], None
    for filled in decoder.chunks(chunks(6)):
        last = memoryview(filled.offsets)  # releases the previous one after the decoding
        seen.append((id(filled), last[0]))
    assert [offset for _, offset in seen] == [0, 1, 2, 3, 4, 5]
    assert len({number for number, _ in seen}) == 2
    assert all(before != after for (before, _), (after, _) in pairwise(seen))


def test_what_is_kept_is_never_written_over() -> None:
    decoder = ChunkDecoder(chunk_bytes=1)
    kept = [memoryview(filled.offsets) for filled in decoder.chunks(chunks(5))]
    assert [view[0] for view in kept] == [0, 1, 2, 3, 4]


def test_columns_without_readers_are_reused() -> None:
    decoder = ChunkDecoder(chunk_bytes=1)
    assert len({id(filled) for filled in decoder.chunks(chunks(5))}) == 1


RECORDS = [
    PlainRecord(b"k%d" % i, None if i % 3 else b"v" * (i % 50), headers=[(b"h", b"x")] * (i % 4))
    for i in range(200)
]


def log_of(codec: int) -> SelectedBatches:
    """Return small batches around a large one."""
    small = [PlainRecord(b"k", b"v"), PlainRecord(None, b"")]
    batches = [
        Batch(records=small, base_offset=0, codec=codec, partition_leader_epoch=3),
        Batch(records=RECORDS, base_offset=2, codec=codec, base_timestamp=7),
        Batch(records=small, base_offset=202, codec=codec),
    ]
    data = memoryview(b"".join(batch.encode() for batch in batches))
    index = scan(data)
    return SelectedBatches(lambda at, length: data[at : at + length], index, select(index))


def decoded(batches: SelectedBatches, **options: int) -> list[list[Record]]:
    return [list(records_of(filled)) for filled in ChunkDecoder(headers=True, **options).chunks(batches)]


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("piece_bytes", [1, 100, 1000])
def test_pieces_of_a_large_batch_are_the_batch(codec: int, piece_bytes: int) -> None:
    (whole,) = decoded(log_of(codec))
    # uncompressed, a large batch is alone in its run; else it follows small ones
    pieces = decoded(log_of(codec), piece_bytes=piece_bytes, chunk_bytes=1 << 20 if codec else piece_bytes)
    assert [record for piece in pieces for record in piece] == whole
    assert len(pieces) > 3


@pytest.mark.parametrize("codec", range(5))
def test_a_bound_cuts_a_batch_in_pieces(codec: int) -> None:
    log = log_of(codec)
    bounded = replace(
        log, selection=select(log.index, start_offset=50, end_offset=150), start_offset=50, end_offset=150
    )
    pieces = decoded(bounded, piece_bytes=100, chunk_bytes=1 << 20 if codec else 100)
    assert [record.offset for piece in pieces for record in piece] == list(range(50, 150))


@pytest.mark.parametrize("codec", range(5))
def test_views_of_pieces(codec: int) -> None:
    decoder = ChunkDecoder(views=True, piece_bytes=100, chunk_bytes=1 << 20 if codec else 100)
    keys = []
    for filled in decoder.chunks(log_of(codec)):
        places = zip(memoryview(filled.key_positions), memoryview(filled.key_lengths), strict=True)
        keys += [None if size < 0 else bytes(decoder.source[at : at + size]) for at, size in places]
    (whole,) = decoded(log_of(codec))
    assert keys == [record.key for record in whole]


@pytest.mark.parametrize("codec", range(5))
def test_of_a_damaged_large_batch_nothing_is_delivered(codec: int) -> None:
    damaged = Batch(records=RECORDS, base_offset=2, codec=codec, count=len(RECORDS) + 1)
    good = Batch(records=BATCH.records, base_offset=0, codec=codec)
    data = memoryview(good.encode() + damaged.encode() + replace(good, base_offset=900).encode())
    index = scan(data)
    batches = SelectedBatches(lambda at, length: data[at : at + length], index, select(index))
    decoder = ChunkDecoder(piece_bytes=100, chunk_bytes=1 << 20 if codec else 100)
    seen: list[int] = []
    errors: list[CorruptRecordError] = []
    for filled in decoder.chunks(batches, errors.append):
        seen += memoryview(filled.offsets).tolist()
    assert seen == [0, 900]
    assert [(error.position, error.offset) for error in errors] == [(index.position[1], 2)]


@pytest.mark.parametrize("piece_bytes", [1, 50, 1000])
def test_pieces_of_a_wrapper_are_the_wrapper(piece_bytes: int) -> None:
    sizes = (3, 100, 2)
    wrappers, end = [], 0
    for size in sizes:
        entries = [legacy_entry(i, None, b"v" * i, timestamp=i) for i in range(size)]
        end += size
        wrappers.append(legacy_wrapper(entries, end - 1, codec=1))
    data = memoryview(b"".join(wrappers))
    index = scan(data)
    batches = SelectedBatches(lambda at, length: data[at : at + length], index, select(index))
    (whole,) = decoded(batches)
    pieces = decoded(batches, piece_bytes=piece_bytes)
    assert [record for piece in pieces for record in piece] == whole
    assert [record.offset for record in whole] == list(range(sum(sizes)))
    assert len(pieces) > 3


@pytest.mark.parametrize("headers", [False, True])
def test_a_record_with_too_many_headers_is_refused_only_where_headers_are_decoded(
    headers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MAX_RECORD_HEADERS", 9)
    monkeypatch.setattr(chunk, "MAX_RECORD_HEADERS", 9)
    many = PlainRecord(b"k", b"v", headers=[(b"", None)] * 10)
    for piece_bytes in (1, 1 << 20):
        data = memoryview(Batch(records=[PlainRecord(b"a", b"b"), many]).encode())
        index = scan(data)
        batches = SelectedBatches(lambda at, length, data=data: data[at : at + length], index, select(index))
        decoder = ChunkDecoder(headers=headers, piece_bytes=piece_bytes, chunk_bytes=piece_bytes)
        if not headers:
            assert sum(len(each) for each in decoder.chunks(batches)) == 2
            continue
        with pytest.raises(CorruptRecordError, match=r"more than .* headers"):
            list(decoder.chunks(batches))
