"""The batch target: one log through the compiled scan and decoder and through the independent ones.

Both must find the same batches, refuse the same ones, and read the same values from the others: as copies and
as views, with headers and without, whole and bounded by offsets, from the file and from decompressed bytes.
Every buffer that the compiled side gets ends where its bytes end.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from tests.fuzz.engine import Target, require
from tests.fuzz.guard import guarded
from tests.fuzz.log_mutations import mutate_log
from tests.models.codecs import CodecError, decompress
from tests.models.fetch_filter import decode_any, scan_log
from tests.models.record_batch import BatchHeader, InvalidBatchError, Record
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import decode_regions
from txnkafka._core.legacy import decode_legacy
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

__all__ = ["BATCH", "check_log", "decoded"]

WHOLE, BOUNDED = 1, 2
CODEC_BITS = 7
HEADER_SIZE = 61
LARGEST = (1 << 63) - 1
MAX_CONTENT = 8 << 20  # decompressed; beyond, only the compiled side is asked
# Of wrappers of old formats, which Kafka passes over in silence; see legacy.pyx.
STRICTER = (
    "the entries inside a compressed wrapper break off",
    "an entry inside a compressed wrapper is too small for its format or reaches past the end",
    "an entry inside a compressed wrapper has another magic than the wrapper",
)

Outcome = list[Record] | str


class ExactDecompressor:
    """Stands where Decompressor does, with the model's codecs and memory that ends where the content ends."""

    def __init__(self) -> None:
        self.buffer = guarded(b"")
        self.end = 0

    def reset(self) -> None:
        self.buffer, self.end = guarded(b""), 0

    def append(self, codec: int, payload: memoryview, *, magic: int = 2) -> tuple[int, int]:
        try:
            content = decompress(codec, bytes(payload), magic)
        except CodecError as error:
            raise CorruptRecordError(str(error)) from error
        begin = self.end
        self.buffer = guarded(bytes(self.buffer[:begin]) + content)
        self.end = begin + len(content)
        return begin, self.end


def selected(log: memoryview, index: BatchIndex, selection: bytes, start: int, end: int) -> SelectedBatches:
    """Each read gives a copy that ends where the wanted bytes end."""

    def read(position: int, length: int) -> memoryview:
        return guarded(log[position : position + length])

    return SelectedBatches(read, index, bytearray(selection), start, end)


def only(index: BatchIndex, i: int, kind: int) -> bytes:
    """A selection of one batch."""
    return bytes(kind if j == i else 0 for j in range(len(index)))


def decoded(decoder: ChunkDecoder, batches: SelectedBatches) -> Outcome:
    """All records, or why there are none; a batch is delivered whole or not at all."""
    records: list[Record] = []
    try:
        for columns in decoder.chunks(batches):
            records.extend(Record(*record) for record in records_of(columns))
    except CorruptRecordError as error:
        require(not records, "records of a damaged batch were delivered")
        require(error.position is not None, "an error that does not say where")
        return error.reason
    return records


def viewed(decoder: ChunkDecoder, batches: SelectedBatches) -> list[tuple[Any, ...]] | str:
    """Offset, timestamp, key and value of each record, out of the bytes that the positions point into."""
    found: list[tuple[Any, ...]] = []
    try:
        for columns in decoder.chunks(batches):
            source = bytes(decoder.source)
            found.extend(
                (offset, timestamp, _slice(source, *key), _slice(source, *value))
                for offset, timestamp, key, value in zip(
                    memoryview(columns.offsets).tolist(),
                    memoryview(columns.timestamps).tolist(),
                    zip(memoryview(columns.key_positions), memoryview(columns.key_lengths), strict=True),
                    zip(memoryview(columns.value_positions), memoryview(columns.value_lengths), strict=True),
                    strict=True,
                )
            )
    except CorruptRecordError as error:
        return error.reason
    return found


def _slice(source: bytes, position: int, length: int) -> bytes | None:
    if length < 0:
        return None
    assert position + length <= len(source)
    return source[position : position + length]


def modelled(batch: bytes) -> list[Record] | None:
    """What the independent decoder reads; None when it refuses."""
    try:
        records = decode_any(batch)
    except InvalidBatchError:
        return None
    wrapped = [record._replace(offset=_wrap(record.offset)) for record in records]
    return wrapped if batch[16] == 2 else list(_ascending(wrapped))


def _wrap(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _ascending(records: Sequence[Record]) -> Iterator[Record]:
    """A consumer does not go back, and no offset follows the largest; the reader of old formats drops such
    records itself."""
    expected = 0
    for record in records:
        if expected <= record.offset < LARGEST:
            yield record
            expected = record.offset + 1


def check_log(content: bytes) -> str:
    """Compare everything; returns what came of the first batch that was refused, else of the whole log."""
    log = guarded(content)
    index = scan(log)
    headers, stop, end = scan_log(content)
    assert [tuple(each) for each in index] == [tuple(each) for each in headers]
    assert (index.stop, index.end_position) == (stop, end)
    label = f"accepted: {stop}, {'no' if not headers else 'some'} batches"
    for i, header in enumerate(headers):
        refusal = check_batch(log, index, i, header)
        if refusal is not None:
            label = f"refused: magic {header.magic}, codec {header.attributes & CODEC_BITS}, {refusal[:60]}"
    return label


def check_batch(log: memoryview, index: BatchIndex, i: int, header: BatchHeader) -> str | None:
    """Compare one batch; returns the compiled side's reason for refusing it."""
    batch = bytes(log[header.position : header.position + header.size])
    whole = selected(log, index, only(index, i, WHOLE), 0, LARGEST)
    found = decoded(ChunkDecoder(headers=True), whole)
    views, plain = viewed(ChunkDecoder(views=True), whole), decoded(ChunkDecoder(), whole)
    expected = modelled(batch)
    if isinstance(found, str):
        assert views == plain == found, f"refused in one form only: {found!r}, {plain!r}, {views!r}"
        assert expected is None or found in STRICTER, f"refused ({found}), but the model reads {expected[:3]}"
        return found
    assert expected is not None, f"the model refuses what was read as {found[:3]}"
    _same(found, expected)
    _same(plain, [record._replace(headers=[]) for record in expected])
    _same(views, [(record.offset, record.timestamp, record.key, record.value) for record in expected])
    _check_bounded(log, index, i, expected)
    _check_exact(batch, index, i, expected)
    return None


def _same(found: object, expected: object) -> None:
    assert found == expected, f"read {str(found)[:400]}, expected {str(expected)[:400]}"


def _check_bounded(log: memoryview, index: BatchIndex, i: int, expected: list[Record]) -> None:
    """Only offsets in a range, which follows from the bytes."""
    if not expected:
        return
    start, end = sorted(expected[(zlib.crc32(log) >> shift) % len(expected)].offset for shift in (0, 16))
    if start < 0:
        return
    bounded = selected(log, index, only(index, i, BOUNDED), start, end)
    within = [record for record in expected if start <= record.offset < end]
    _same(decoded(ChunkDecoder(headers=True), bounded), within)


def _check_exact(batch: bytes, index: BatchIndex, i: int, expected: list[Record]) -> None:
    """The same from decompressed bytes with nothing behind them."""
    columns = RecordColumns(headers=True)
    selection = only(index, i, WHOLE)
    if index.magic[i] == 2:
        codec = index.attributes[i] & CODEC_BITS
        records = decompress(codec, batch[HEADER_SIZE:]) if index.record_count[i] else b""
        regions = array("q", [0, len(records)])
        decode_regions(guarded(records), regions, index, selection, i, i + 1, columns)
    else:
        position = index.position[i]
        decode_legacy(
            guarded(batch), index, selection, i, i + 1, columns, ExactDecompressor(), position=position
        )
    _same([Record(*record) for record in records_of(columns)], expected)


BATCH = Target("batch", check_log, mutate_log, iterations=900)
