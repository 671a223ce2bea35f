"""Decodes selected batches to columns, a chunk at a time.

A chunk is about a megabyte of batches: large enough that the cost of a call is negligible, small enough that
the bytes are still in the cache when they are decoded. Uncompressed batches are decoded in place; compressed
ones are first decompressed into one buffer. A batch with more than ``bounds.PIECE_BYTES`` of records is
checked as a whole first and then becomes several chunks, so that columns and objects stay small. The CRC of a
batch is checked before any other field is trusted.

Invariant: exactly the selected records up to the first damaged batch are yielded in offset order; the error
is raised by the next step, never instead of good records before it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from txnkafka._core.codec_functions import DAMAGED, LEFT
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import (
    corrupt_batch,
    decode_batches,
    decode_regions,
    divide_batch,
)
from txnkafka._core.legacy import WrapperPieces, decode_legacy
from txnkafka._core.runs import next_run
from txnkafka._core.scan import BatchIndex
from txnkafka.bounds import MAX_DECOMPRESSED_BYTES, MAX_RECORD_HEADERS, PIECE_BYTES
from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch_header import ATTRIBUTE_CODEC, HEADER_SIZE
from txnkafka.record.compression import Decompressor

CHUNK_BYTES = 1 << 20
DECOMPRESSED_BYTES = 512 << 10  # small enough to be still in the cache when it is decoded
NO_LIMIT = (1 << 31) - 1
COMPRESSED, LEGACY = 1, 2  # the kinds of runs that next_run distinguishes; 0 is plain

ReadBytes = Callable[[int, int], memoryview]
OnCorrupt = Callable[[CorruptRecordError], None]


@dataclass(frozen=True, slots=True)
class SelectedBatches:
    """The batches to decode from one file.

    ``read(position, length)`` returns the file's bytes. ``selection`` has one byte per batch of ``index``
    (``read_committed.select``); of batches selected as bounded only offsets in [start_offset, end_offset)
    count. ``settled()`` returns after each use whether the bytes were still those of the file; if not,
    ``read`` returns them again, limited to the file's size. It is None where ``read`` returns copies."""

    read: ReadBytes
    index: BatchIndex
    selection: bytearray
    start_offset: int = 0
    end_offset: int = (1 << 63) - 1
    settled: Callable[[], bool] | None = None

    @property
    def have_changed(self) -> bool:
        """Return whether the bytes that were last read have changed in the file, and must not be used."""
        return self.settled is not None and not self.settled()

    def bytes_of(self, first: int, end: int) -> tuple[int, memoryview]:
        """Return (position, bytes) from batch ``first`` to the end of batch ``end - 1``."""
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


class _BatchPieces:
    """One valid batch of magic 2, decoded piece by piece: each is an entry of ``index`` and a region of
    ``source``."""

    def __init__(
        self,
        source: memoryview,
        index: BatchIndex,
        regions: array[int],
        selected: int,
        bounds: tuple[int, int],
    ) -> None:
        self._source = source
        self._index = index
        self._regions = regions
        self._selection = bytes([selected]) * len(index)
        self._bounds = bounds
        self._next = 0

    def decode(self, columns: RecordColumns) -> bool:
        """Add the records of the next piece to ``columns``; returns whether more follow."""
        i = self._next
        self._next = i + 1
        if i < len(self._index):
            region = self._regions[2 * i : 2 * i + 2]
            start, end = self._bounds
            decode_regions(
                self._source, region, self._index, self._selection, i, i + 1, columns,
                start_offset=start, end_offset=end,
            )  # fmt: skip
        return self._next < len(self._index)


_Pieces = _BatchPieces | WrapperPieces


class ChunkDecoder:
    """Decodes the batches of one file after another. Only one thread at a time may use it.

    ``headers`` and ``views`` as in RecordColumns; a batch with a record of more than MAX_RECORD_HEADERS
    headers counts as damaged where headers are decoded. With views, the positions of the last chunk are
    relative to ``source``. Columns are reused unless the caller keeps a view of them; then that memory is
    kept, and the next chunk gets new columns.

    While ``is_ahead`` is set, ``chunks`` yields empty columns instead of a batch that is damaged or has more
    than ``piece_bytes`` of records, and continues with that batch when ``is_ahead`` is cleared."""

    def __init__(
        self,
        *,
        headers: bool = False,
        views: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self.columns = RecordColumns(headers=headers, views=views)
        self._other: RecordColumns | None = None
        self.chunk_bytes = chunk_bytes
        self.piece_bytes = piece_bytes
        self.source: memoryview = memoryview(b"")
        self.decompressor = Decompressor()
        self.is_ahead = False

    def chunks(
        self, batches: SelectedBatches, on_corrupt: OnCorrupt | None = None
    ) -> Iterator[RecordColumns]:
        """Yield the selected records of one file.

        A damaged batch raises CorruptRecordError, or is left out when ``on_corrupt`` handles the error.
        Records from bytes that have changed in the file are never yielded. Errors of ``batches.read`` are
        passed on."""
        i, stop = 0, len(batches.index)
        while True:
            first, end, kind = next_run(batches.index, batches.selection, i, stop, self.chunk_bytes)
            if first == end:
                return
            columns = self._fresh_columns()
            if self.is_ahead and batches.index.size[first] > self.piece_bytes:
                yield columns
                continue
            self.decompressor.max_bytes = self.piece_bytes if self.is_ahead else MAX_DECOMPRESSED_BYTES
            run = _Run(first, end, *batches.bytes_of(first, end))
            try:
                following, pieces = self._decode(kind, batches, run)
            except CorruptRecordError as error:
                if batches.have_changed:
                    continue
                if self.is_ahead:  # damaged, or too large
                    yield self._fresh_columns()
                    continue
                if on_corrupt is None:
                    raise
                on_corrupt(error)
                i = first + 1
                continue
            if batches.have_changed:
                continue  # the same error again
            i = following
            if len(columns):
                yield columns
            if pieces is not None:
                yield from self._decode_pieces(pieces, on_corrupt)
                pieces = None

    def exchange(self, columns: RecordColumns | None) -> RecordColumns:
        """Return the columns of the last chunk, which now belong to the caller. The next chunk is decoded
        into ``columns``, or into new ones."""
        filled = self.columns
        self.columns = self._new_columns() if columns is None else columns
        return filled

    def _new_columns(self) -> RecordColumns:
        return RecordColumns(headers=self.columns.with_headers, views=self.columns.views)

    def _decode_pieces(self, pieces: _Pieces, on_corrupt: OnCorrupt | None) -> Iterator[RecordColumns]:
        more = True
        while more:
            columns = self._fresh_columns()
            try:
                more = pieces.decode(columns)
            except CorruptRecordError as error:  # the batch was valid before, so the file has changed
                if on_corrupt is None:
                    raise
                on_corrupt(error)
                return
            if len(columns):
                yield columns

    def _fresh_columns(self) -> RecordColumns:
        """Return columns that are not in use. A loop over chunks still refers to the last one, so two columns
        alternate."""
        if self.columns.in_use:
            other, self._other = self._other, self.columns
            if other is None or other.in_use:
                other = self._new_columns()
            self.columns = other
        self.columns.reset()
        return self.columns

    def _decode(self, kind: int, batches: SelectedBatches, run: _Run) -> tuple[int, _Pieces | None]:
        """Decode a run into the columns. Returns the number of the next batch, and the pieces of the batch
        before it if that is too large for one chunk. Raises only for the first batch of the run."""
        self.source = memoryview(b"")  # release a large buffer before the next one is allocated
        if kind == COMPRESSED:
            return self._decode_compressed(batches, run)
        if kind == LEGACY:
            return self._decode_legacy(batches, run)
        if batches.index.size[run.first] > self.piece_bytes:
            # the file may change between two pieces, so they use one copy
            self.source = run.source if batches.settled is None else memoryview(bytes(run.source))
            return run.first + 1, self._divided(batches, run.first, position=run.position)
        self.source = run.source
        following = decode_batches(
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
        return following, None

    def _decode_legacy(self, batches: SelectedBatches, run: _Run) -> tuple[int, WrapperPieces | None]:
        large: list[WrapperPieces] = []
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
            large=large,
            piece_bytes=self.piece_bytes,
        )
        self.source = self.decompressor.buffer
        return following, large[0] if large else None

    def _decode_compressed(self, batches: SelectedBatches, run: _Run) -> tuple[int, _BatchPieces | None]:
        first, end, position, source = run
        regions = self._decompress(source, position, batches, first, end)
        self.source = self.decompressor.buffer
        stop = first + len(regions) // 2
        is_large = regions[-1] - regions[-2] > self.piece_bytes
        following = decode_regions(
            self.source,
            regions,
            batches.index,
            batches.selection,
            first,
            stop - is_large,
            self.columns,
            start_offset=batches.start_offset,
            end_offset=batches.end_offset,
        )
        if not is_large or following < stop - 1:
            return following, None
        try:
            return stop, self._divided(batches, stop - 1, regions[-2:])
        except CorruptRecordError:
            if stop - 1 == first:
                raise
            return stop - 1, None

    def _divided(
        self, batches: SelectedBatches, i: int, region: array[int] | None = None, *, position: int = 0
    ) -> _BatchPieces:
        """Check batch ``i`` and divide it; its records are in ``region`` of the decompressed source, or
        uncompressed in the batch."""
        begin, end = (-1, -1) if region is None else region
        index, regions = divide_batch(
            self.source,
            batches.index,
            i,
            self.piece_bytes,
            begin=begin,
            end=end,
            position=position,
            max_headers=MAX_RECORD_HEADERS if self.columns.with_headers else NO_LIMIT,
        )
        start_offset = batches.start_offset
        if len(self.columns):  # records that overlap earlier ones are not yielded twice
            start_offset = max(start_offset, memoryview(self.columns.offsets)[-1] + 1)
        limits = start_offset, batches.end_offset
        return _BatchPieces(self.source, index, regions, batches.selection[i], limits)

    def _decompress(
        self, source: memoryview, position: int, batches: SelectedBatches, first: int, end: int
    ) -> array[int]:
        """Check and decompress batches until one fails, the chunk is full, or a batch is too large for one
        chunk; that batch is the last. Returns begin and end of each batch's records in the decompressor's
        buffer. Raises CorruptRecordError for the first batch of the run."""
        regions = array("q")
        decompressor, index = self.decompressor, batches.index
        decompressor.reset()
        i = first
        while True:
            i, reason = decompressor.append_batches(
                source, position, index, batches.selection, range(i, end), regions=regions,
                full=DECOMPRESSED_BYTES, large=self.piece_bytes,
            )  # fmt: skip
            if reason == DAMAGED and i == first:
                raise corrupt_batch(index, first)
            if reason != LEFT:
                return regions
            begin = index.position[i] - position
            payload = source[begin + HEADER_SIZE : begin + index.size[i]]
            try:
                region = decompressor.append(index.attributes[i] & ATTRIBUTE_CODEC, payload)
            except CorruptRecordError as error:
                if i > first:
                    return regions
                error.position, error.offset = index.position[i], index.base_offset[i]
                raise
            regions.extend(region)
            i += 1
            if region[1] - region[0] > self.piece_bytes:
                return regions
