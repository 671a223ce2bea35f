"""From selected batches to columns, a chunk at a time.

A chunk is about a megabyte of batches: enough that a call costs nothing, little enough that the bytes are
still in the cache when they are decoded. Uncompressed batches are decoded where they lie; compressed ones
are first decompressed into one buffer.
Every batch's CRC is checked before anything else is believed of it.

Invariant: what is yielded is exactly the selected records in offset order up to the first damaged batch;
the error comes with the next step, never instead of good records before it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import check_crcs, corrupt_batch, decode_batches, decode_regions, next_run
from txnkafka._core.legacy import decode_legacy
from txnkafka._core.scan import BatchIndex
from txnkafka.errors import CorruptRecordError
from txnkafka.record.compression import Decompressor

__all__ = ["CHUNK_BYTES", "ChunkDecoder", "SelectedBatches"]

CHUNK_BYTES = 1 << 20
DECOMPRESSED_BYTES = 512 << 10  # so that what was decompressed is still in the cache when it is decoded
HEADER_SIZE = 61  # of a magic 2 batch
CODEC_BITS = 0x07
COMPRESSED, LEGACY = 1, 2  # kinds that next_run tells apart; 0 is plain

ReadBytes = Callable[[int, int], memoryview]
OnCorrupt = Callable[[CorruptRecordError], None]


@dataclass(frozen=True, slots=True)
class SelectedBatches:
    """What to decode of one file.

    ``read(position, length)`` gives the file's bytes, ``selection`` one byte per batch of ``index``
    (``read_committed.select``); of batches selected as bounded only offsets in [start_offset, end_offset)
    count. ``settled()`` says after each use whether the bytes were still those of the file; if not, ``read``
    gives them again, and no more than the file has.
    """

    read: ReadBytes
    index: BatchIndex
    selection: bytearray
    start_offset: int = 0
    end_offset: int = (1 << 63) - 1
    settled: Callable[[], bool] = lambda: True

    def bytes_of(self, first: int, end: int) -> tuple[int, memoryview]:
        """(position, bytes) from batch ``first`` to the end of batch ``end - 1``."""
        position = self.index.position[first]
        return position, self.read(
            position, self.index.position[end - 1] + self.index.size[end - 1] - position
        )


class _Run(NamedTuple):
    """Batches ``first`` to ``end``, and their bytes from ``position`` of the file on."""

    first: int
    end: int
    position: int
    source: memoryview


class ChunkDecoder:
    """Decodes batches of one file after another. For one thread at a time.

    ``headers`` and ``views`` as in RecordColumns. With views, ``source`` is what the positions of the last
    chunk count from.
    Columns are reused as long as nobody looks at them any more; whoever keeps a buffer keeps that memory,
    and the next chunk gets fresh columns.
    """

    def __init__(self, *, headers: bool = False, views: bool = False, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.columns = RecordColumns(headers=headers, views=views)
        self._other: RecordColumns | None = None
        self.chunk_bytes = chunk_bytes
        self.source: memoryview = memoryview(b"")
        self.decompressor = Decompressor()

    def chunks(
        self, batches: SelectedBatches, on_corrupt: OnCorrupt | None = None
    ) -> Iterator[RecordColumns]:
        """The selected records of one file.

        A damaged batch raises CorruptRecordError, or is left out when ``on_corrupt`` takes the error. Records
        of bytes that were changed meanwhile are never yielded. What ``batches.read`` raises is raised.
        """
        i, stop = 0, len(batches.index)
        while True:
            first, end, kind = next_run(batches.index, batches.selection, i, stop, self.chunk_bytes)
            if first == end:
                return
            columns = self._fresh_columns()
            run = _Run(first, end, *batches.bytes_of(first, end))
            try:
                following = self._decode(kind, batches, run)
            except CorruptRecordError as error:
                if not batches.settled():
                    continue
                if on_corrupt is None:
                    raise
                on_corrupt(error)
                i = first + 1
                continue
            if not batches.settled():
                continue  # the same again
            i = following
            if len(columns):
                yield columns

    def _fresh_columns(self) -> RecordColumns:
        """Who goes through chunks in a loop still holds the last one: two take turns."""
        if self.columns.in_use:
            other, self._other = self._other, self.columns
            if other is None or other.in_use:
                other = RecordColumns(headers=self.columns.with_headers, views=self.columns.views)
            self.columns = other
        self.columns.reset()
        return self.columns

    def _decode(self, kind: int, batches: SelectedBatches, run: _Run) -> int:
        """Decode a run into the columns; returns the batch to go on with. Raises only for the first batch of
        the run."""
        if kind == COMPRESSED:
            return self._decode_compressed(batches, run)
        if kind == LEGACY:
            following = decode_legacy(
                run.source,
                batches.index,
                batches.selection,
                run.first,
                run.end,
                self.columns,
                self.decompressor,
                position=run.position,
                start_offset=batches.start_offset,
                end_offset=batches.end_offset,
            )
            self.source = self.decompressor.buffer
            return following
        self.source = run.source
        return decode_batches(
            run.source,
            batches.index,
            batches.selection,
            run.first,
            run.end,
            self.columns,
            position=run.position,
            start_offset=batches.start_offset,
            end_offset=batches.end_offset,
        )

    def _decode_compressed(self, batches: SelectedBatches, run: _Run) -> int:
        first, end, position, source = run
        sound = check_crcs(source, batches.index, first, end, batches.selection, position=position)
        if sound == first:
            raise corrupt_batch(batches.index, first)
        regions = self._decompress(source, position, batches, first, sound)
        self.source = self.decompressor.buffer
        return decode_regions(
            self.source,
            regions,
            batches.index,
            batches.selection,
            first,
            first + len(regions) // 2,
            self.columns,
            start_offset=batches.start_offset,
            end_offset=batches.end_offset,
        )

    def _decompress(
        self, source: memoryview, position: int, batches: SelectedBatches, first: int, end: int
    ) -> array[int]:
        """Begin and end of each batch's records in the decompressor's buffer, until a batch fails or the
        chunk is full."""
        regions = array("q")
        decompressor = self.decompressor
        decompressor.reset()
        index = batches.index
        columns = (index.position, index.size, index.attributes, index.record_count)
        parts = [column[first:end].tolist() for column in columns]
        headers = zip(*parts, batches.selection[first:end], strict=True)
        for begin, size, attributes, count, selected in headers:
            if not selected or count == 0:  # nobody looks into an empty batch
                regions.extend((0, 0))
                continue
            if decompressor.end > DECOMPRESSED_BYTES:
                break
            payload = source[begin - position + HEADER_SIZE : begin - position + size]
            try:
                regions.extend(decompressor.append(attributes & CODEC_BITS, payload))
            except CorruptRecordError as error:
                if regions:
                    break
                error.position, error.offset = begin, index.base_offset[first]
                raise
        return regions
