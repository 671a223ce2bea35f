"""Chunks of a file: which columns they come in."""

from __future__ import annotations

from itertools import pairwise

from tests.models.builder import Batch, PlainRecord
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

BATCH = Batch(records=[PlainRecord(b"k", b"v")])


def chunks(count: int) -> SelectedBatches:
    data = memoryview(b"".join(Batch(records=BATCH.records, base_offset=i).encode() for i in range(count)))
    index = scan(data)
    return SelectedBatches(lambda at, length: data[at : at + length], index, select(index))


def test_a_loop_that_looks_at_the_last_chunk_gets_two_columns_in_turn() -> None:
    decoder = ChunkDecoder(chunk_bytes=1)
    seen, last = [], None
    for columns in decoder.chunks(chunks(6)):
        last = memoryview(columns.offsets)  # the one before is let go here, behind the decoding
        seen.append((id(columns), last[0]))
    assert [offset for _, offset in seen] == [0, 1, 2, 3, 4, 5]
    assert len({number for number, _ in seen}) == 2
    assert all(before != after for (before, _), (after, _) in pairwise(seen))


def test_what_is_kept_is_never_written_over() -> None:
    decoder = ChunkDecoder(chunk_bytes=1)
    kept = [memoryview(columns.offsets) for columns in decoder.chunks(chunks(5))]
    assert [view[0] for view in kept] == [0, 1, 2, 3, 4]


def test_columns_that_nobody_looks_at_are_used_again() -> None:
    decoder = ChunkDecoder(chunk_bytes=1)
    assert len({id(columns) for columns in decoder.chunks(chunks(5))}) == 1
