"""Reads the units of a plan with several threads, and yields their columns in the order of the plan.

A unit is one task. A thread decodes it until the unit ends, its columns hold AHEAD_BYTES, or the next batch
is damaged or large; the caller's thread decodes the rest when the unit is next. So no thread ever waits for
the caller, errors appear in log order, and only one thread at a time needs the memory of a large batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from txnkafka.bounds import AHEAD_BYTES
from txnkafka.logdir.plan import UNIT_BYTES
from txnkafka.logdir.read import opened, read_unit
from txnkafka.record.batch_header import ATTRIBUTE_CODEC

if TYPE_CHECKING:
    from txnkafka._core.columns import RecordColumns
    from txnkafka.logdir.plan import ReadUnit
    from txnkafka.record.chunk import ChunkDecoder, OnCorrupt
    from txnkafka.storage.formats.segment_reader import SegmentReader

AHEAD_UNIT_BYTES = 2 << 20
SPARE_COLUMNS = 16  # per thread: about the number of chunks in a unit of compressed records
MOST_UNITS = 1 << 16  # a plan takes about 500 bytes per unit

NewDecoder = Callable[[], "ChunkDecoder"]


def unit_bytes_of(log_bytes: int, threads: int) -> int:
    """Return the size of units for ``threads`` threads that read a log of ``log_bytes``: with several
    threads, small enough for a unit's columns to fit into AHEAD_BYTES, but larger if the plan would become
    too long."""
    if threads == 1:
        return UNIT_BYTES
    return min(max(AHEAD_UNIT_BYTES, log_bytes // MOST_UNITS), UNIT_BYTES)


def read_in_order(
    segments: Sequence[SegmentReader],
    units: Sequence[ReadUnit],
    new_decoder: NewDecoder,
    on_corrupt: OnCorrupt | None,
    *,
    threads: int,
) -> Iterator[RecordColumns]:
    """Yield the records of ``units`` of ``segments`` as columns, in order, decoded by ``threads`` threads.

    The memory of the columns is reused when the next ones are requested, unless the caller keeps a view.
    Raises the errors of ``read_unit``, after yielding everything before the error; ``on_corrupt`` is called
    in the caller's thread."""
    if threads > 1 and len(units) > 1 and _is_compressed(segments, units[0]):
        yield from _read_ahead(segments, units, new_decoder, on_corrupt, threads)
        return
    decoder = new_decoder()
    for segment, unit in opened(segments, units):
        yield from read_unit(segment, unit, decoder, on_corrupt)


def _is_compressed(segments: Iterable[SegmentReader], unit: ReadUnit) -> bool:
    """Return True if the segment of ``unit`` has compressed batches. Uncompressed records are decoded at
    memory speed, and passing them between threads costs more than it gains."""
    segment = next(each for each in segments if each.path == unit.path)
    attributes = {each for index in segment.indexes() for each in index.attributes}
    return any(each & ATTRIBUTE_CODEC for each in attributes)


def _read_ahead(
    segments: Iterable[SegmentReader],
    units: Iterable[ReadUnit],
    new_decoder: NewDecoder,
    on_corrupt: OnCorrupt | None,
    threads: int,
) -> Iterator[RecordColumns]:
    spare = _Spare(segments, new_decoder, SPARE_COLUMNS * threads)
    waiting: deque[tuple[_Reading, Future[None]]] = deque()
    executor = ThreadPoolExecutor(threads - 1, "txnkafka-read")
    try:
        remaining = iter(units)
        while True:
            while len(waiting) < 2 * threads and (unit := next(remaining, None)) is not None:
                reading = _Reading(unit, spare, on_corrupt)
                waiting.append((reading, executor.submit(reading.ahead)))
            if not waiting:
                return
            reading, done = waiting.popleft()
            if not done.cancel():
                _help(done, waiting)
            yield from reading.columns()
    finally:
        executor.shutdown(cancel_futures=True)
        spare.close()


def _help(done: Future[None], waiting: Iterable[tuple[_Reading, Future[None]]]) -> None:
    """Wait for a unit to be decoded, and decode units that no thread has begun in the meantime."""
    for later, begun in waiting:
        if done.done():
            break
        if begun.cancel():
            later.ahead()
    done.result()


class _Spare:
    """A pool of unused readers, decoders and columns, so that many units share open files and memory. Keeps
    at most ``most`` columns."""

    def __init__(self, segments: Iterable[SegmentReader], new_decoder: NewDecoder, most: int) -> None:
        self._segments = {segment.path: segment for segment in segments}
        self._new_decoder = new_decoder
        self._readers: list[SegmentReader] = []
        self._decoders: list[ChunkDecoder] = []
        self._columns: deque[RecordColumns] = deque(maxlen=most)

    def reader(self, path: str) -> SegmentReader:
        """Return a reader of the file for exclusive use. Only the caller's thread may call this."""
        for i, reader in enumerate(self._readers):
            if reader.path == path:
                return self._readers.pop(i)
        self.close()  # units are in file order
        return self._segments[path].another()

    def put_reader(self, reader: SegmentReader) -> None:
        self._readers.append(reader)

    def close(self) -> None:
        while self._readers:
            self._readers.pop().close()

    def decoder(self) -> ChunkDecoder:
        return self._decoders.pop() if self._decoders else self._new_decoder()

    def put_decoder(self, decoder: ChunkDecoder) -> None:
        self._decoders.append(decoder)

    def columns(self) -> RecordColumns | None:
        try:
            return self._columns.pop()
        except IndexError:  # other threads also take them
            return None

    def put_columns(self, columns: RecordColumns) -> None:
        if not columns.in_use and columns.nbytes <= AHEAD_BYTES:
            self._columns.append(columns)


class _Reading:
    """The reading of one unit: ``ahead`` runs in any thread, then ``columns`` in the caller's."""

    def __init__(self, unit: ReadUnit, spare: _Spare, on_corrupt: OnCorrupt | None) -> None:
        self._spare = spare
        self._decoder = spare.decoder()
        self._decoder.is_ahead = not unit.damage  # the caller's thread reports damage
        self._reader = spare.reader(unit.path)
        self._following = read_unit(self._reader, unit, self._decoder, on_corrupt)
        self._ready: deque[RecordColumns] = deque()
        self._error: Exception | None = None

    def ahead(self) -> None:
        """Decode as much as is permitted before the unit is next."""
        if not self._decoder.is_ahead:
            return
        taken = 0
        try:
            for columns in self._following:
                if not len(columns):  # the next batch waits until the unit is next
                    return
                taken += columns.nbytes
                self._ready.append(self._decoder.exchange(self._spare.columns()))
                if taken >= AHEAD_BYTES:
                    return
        except Exception as error:
            self._error = error

    def columns(self) -> Iterator[RecordColumns]:
        """Yield all columns of the unit."""
        while self._ready:
            columns = self._ready.popleft()
            yield columns
            self._spare.put_columns(columns)
        if self._error is not None:
            raise self._error
        self._decoder.is_ahead = False
        yield from self._following
        self._spare.put_decoder(self._decoder)
        self._spare.put_reader(self._reader)
