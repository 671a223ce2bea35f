"""decode_legacy, compared with the vectors of the format and the model, and with every kind of damage."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.builder import compress, legacy_entry, legacy_wrapper
from tests.models.legacy import decode_entry
from tests.models.record_batch import InvalidBatchError, Record
from tests.models.vectors import VECTORS
from txnkafka._core.columns import RecordColumns
from txnkafka._core.legacy import decode_legacy
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.errors import CorruptRecordError, UnsupportedCompressionTypeError
from txnkafka.record.batch import records_of
from txnkafka.record.compression import Decompressor

ALL = (1 << 63) - 1
LZ4, ZSTD = 3, 4

NAMES = [name for name in VECTORS if name.startswith("magic")]


def decode(
    log: bytes, *, start_offset: int = 0, end_offset: int = ALL, check_crc: bool = True
) -> list[Record]:
    """Return the records of all calls up to the end; raises the error of the last call."""
    index = scan(log)
    selection = select(index, start_offset=start_offset, end_offset=end_offset)
    columns, decompressor = RecordColumns(headers=True), Decompressor()
    i = 0
    while i < len(index):
        i = decode_legacy(
            log, index, selection, i, len(index), columns, decompressor,
            start_offset=start_offset, end_offset=end_offset, check_crc=check_crc,
        )  # fmt: skip
    return [Record(*each) for each in records_of(columns)]


def entries_of(log: bytes) -> list[bytes]:
    index = scan(log)
    return [
        log[header.position : header.position + header.size]
        for header in (index[i] for i in range(len(index)))
    ]


def model(log: bytes, start_offset: int = 0, end_offset: int = ALL) -> list[Record]:
    """Decode entry by entry; like the consumer, skip records below an offset that was already returned."""
    records: list[Record] = []
    next_offset = start_offset
    for entry in entries_of(log):
        last_offset = struct.unpack_from(">q", entry)[0]
        if last_offset >= next_offset:
            for record in decode_entry(entry):
                if next_offset <= record.offset < end_offset:
                    records.append(record)
                    next_offset = record.offset + 1
            next_offset = max(next_offset, last_offset + 1)
    return records


def resealed(entry: bytes) -> bytes:
    """Set the CRC of the entry to that of its bytes."""
    return entry[:12] + struct.pack(">I", zlib.crc32(entry[16:])) + entry[16:]


@pytest.mark.parametrize("name", NAMES)
def test_vectors(name: str) -> None:
    vector = VECTORS[name]
    assert decode(vector.log) == vector.records == model(vector.log)


contents = st.none() | st.binary(max_size=20)
plain = st.lists(st.tuples(contents, contents, st.integers(-1, 2**62)), min_size=1, max_size=5)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Generate plain entries and wrappers of both formats with gaps between their offsets."""
    log, offset = b"", draw(st.integers(0, 5))
    for _ in range(draw(st.integers(1, 5))):
        magic, codec = draw(st.integers(0, 1)), draw(st.integers(0, 3))
        late = draw(st.booleans())
        gaps = draw(plain)
        offsets = []
        for _record in gaps:
            offsets.append(offset)
            offset += draw(st.integers(1, 3))
        base = offsets[0] if magic == 1 and codec else 0
        attributes = 8 if late and not codec else 0
        entries = [
            legacy_entry(at - base, key, value, magic=magic, timestamp=timestamp, attributes=attributes)
            for at, (key, value, timestamp) in zip(offsets, gaps, strict=True)
        ]
        if codec:
            log += legacy_wrapper(
                entries, offsets[-1], codec=codec, magic=magic, timestamp=77, log_append_time=late
            )
        else:
            log += b"".join(entries)
    return log


@given(logs(), st.integers(0, 40), st.integers(0, 40))
def test_any_log_and_any_bounds(log: bytes, start_offset: int, end_offset: int) -> None:
    assert decode(log) == model(log)
    assert decode(log, start_offset=start_offset, end_offset=end_offset) == model(
        log, start_offset, end_offset
    )


@given(logs())
def test_views_are_the_same_bytes(log: bytes) -> None:
    index, columns, decompressor = scan(log), RecordColumns(views=True), Decompressor()
    assert decode_legacy(log, index, b"\1" * len(index), 0, len(index), columns, decompressor) == len(index)
    buffer = bytes(decompressor.buffer)

    def values(positions: object, lengths: object) -> list[bytes | None]:
        where = zip(memoryview(positions).tolist(), memoryview(lengths).tolist(), strict=True)
        return [None if length < 0 else buffer[at : at + length] for at, length in where]

    records = model(log)
    assert memoryview(columns.offsets).tolist() == [record.offset for record in records]
    assert values(columns.key_positions, columns.key_lengths) == [record.key for record in records]
    assert values(columns.value_positions, columns.value_lengths) == [record.value for record in records]


# Offsets and timestamps


def wrapper(inner: Sequence[int], offset: int, *, magic: int = 1, log_append_time: bool = False) -> bytes:
    entries = [legacy_entry(each, None, b"v", magic=magic, timestamp=100 + each) for each in inner]
    return legacy_wrapper(
        entries, offset, codec=LZ4, magic=magic, timestamp=999, log_append_time=log_append_time
    )


@pytest.mark.parametrize(
    ("inner", "offset", "magic", "offsets"),
    [
        ([0, 1, 2], 12, 1, [10, 11, 12]),
        ([0, 2], 12, 1, [10, 12]),  # compacted
        ([5, 6], 12, 1, [11, 12]),
        ([0, 1, 2], 2, 1, [0, 1, 2]),
        ([0, 1, 2], 0, 1, [0, 1, 2]),  # librdkafka
        ([10, 12], 12, 0, [10, 12]),
    ],
)
def test_offsets_of_inner_entries(inner: list[int], offset: int, magic: int, offsets: list[int]) -> None:
    assert [record.offset for record in decode(wrapper(inner, offset, magic=magic))] == offsets


def test_log_append_time_of_a_wrapper_counts_for_all() -> None:
    assert [(each.timestamp, each.timestamp_type) for each in decode(wrapper([0, 1], 1))] == [
        (100, 0),
        (101, 0),
    ]
    late = decode(wrapper([0, 1], 1, log_append_time=True))
    assert [(each.timestamp, each.timestamp_type) for each in late] == [(999, 1), (999, 1)]


def test_magic_0_knows_no_log_append_time() -> None:
    log = wrapper([0, 1], 1, magic=0, log_append_time=True) + legacy_entry(
        2, None, None, magic=0, attributes=8
    )
    assert {(each.timestamp, each.timestamp_type) for each in decode(log)} == {(-1, -1)}


def test_bounds_inside_a_wrapper() -> None:
    log = wrapper([0, 1, 2, 3], 13)
    assert [each.offset for each in decode(log, start_offset=11, end_offset=13)] == [11, 12]
    assert decode(log, start_offset=14) == []


def test_what_overlaps_is_returned_once() -> None:
    log = (
        wrapper([0, 1, 2], 2)
        + wrapper([0, 1, 2], 3)
        + legacy_entry(3, None, b"again")
        + wrapper([1, 0, 2], 6)
    )
    assert [each.offset for each in decode(log)] == [0, 1, 2, 3, 5, 6] == [each.offset for each in model(log)]


def test_overlap_with_the_call_before() -> None:
    log = wrapper([0, 1, 2], 2) + wrapper([0, 1, 2], 3)
    columns = RecordColumns()
    assert decode_legacy(log, scan(log), b"\1\1", 1, 2, columns, Decompressor()) == 2
    assert memoryview(columns.offsets).tolist() == [3]


# Damage

# Where Kafka's iterator continues silently.
STRICTER = "break off|reaches past the end|another magic"
DAMAGE = {
    "a null value": (legacy_entry(4, None, None, attributes=LZ4), "null value"),
    "no entries": (legacy_wrapper([], 4, codec=1), "holds no entries"),
    "a wrapper in it": (legacy_wrapper([wrapper([0], 0)], 4, codec=LZ4), "itself compressed"),
    "another magic": (legacy_wrapper([legacy_entry(0, None, None, magic=0)], 4, codec=LZ4), "another magic"),
    "a lower offset": (wrapper([0, 1, 5], 4), "smaller than the relative offset"),
    "a cut header": (legacy_wrapper([legacy_entry(0, None, b"v") + bytes(25)], 4, codec=LZ4), "break off"),
    "a cut entry": (
        legacy_wrapper([legacy_entry(0, None, b"v"), legacy_entry(1, None, b"value")[:-1]], 4, codec=LZ4),
        "past the end",
    ),
    "a wrong inner CRC": (
        legacy_wrapper([legacy_entry(0, None, b"v", crc=1)], 4, codec=LZ4),
        "CRC of an entry",
    ),
    "a long inner field": (
        legacy_wrapper([resealed(legacy_entry(0, None, b"v" * 9)[:-10] + b"\x7f" + b"v" * 9)], 4, codec=LZ4),
        "inside a compressed wrapper reach past",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_wrappers_that_are_refused(name: str) -> None:
    log, reason = DAMAGE[name]
    good = legacy_entry(3, b"k", b"v")
    columns, decompressor, index = RecordColumns(), Decompressor(), scan(good + log)
    assert decode_legacy(good + log, index, b"\1\1", 0, 2, columns, decompressor) == 1
    assert len(columns) == 1
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode_legacy(good + log, index, b"\1\1", 1, 2, columns, decompressor)
    assert (caught.value.position, caught.value.offset) == (len(good), 4)
    assert len(columns) == 1
    columns.reset()


def test_the_offset_of_a_damaged_wrapper_is_where_the_log_before_it_ends() -> None:
    """Its own is that of its last record: who goes on there after a repair would miss the others."""
    entries = [legacy_entry(i, None, b"v") for i in range(5)]
    wrappers = [legacy_wrapper(entries, last, codec=LZ4) for last in (4, 9, 14)]
    log = wrappers[0] + wrappers[1][:-1] + b"\1" + wrappers[2][:-1] + b"\1"
    index = scan(log)
    for i, selection, start_offset, expected in (
        (1, b"\1\1\1", 0, 5),
        (1, b"\1\1\1", 7, 7),
        (1, b"\0\1\1", 5, 5),  # where the one before it is of an earlier window
        (2, b"\1\1\1", 0, 10),  # the one before it was left out
    ):
        with pytest.raises(CorruptRecordError) as caught:
            decode_legacy(
                log, index, selection, i, 3, RecordColumns(), Decompressor(), start_offset=start_offset
            )
        assert (caught.value.position, caught.value.offset) == (index[i].position, expected)


@pytest.mark.parametrize(("codec", "magic"), [(ZSTD, 0), (ZSTD, 1), (5, 1), (7, 0)])
def test_codecs_of_later_times(codec: int, magic: int) -> None:
    with pytest.raises(UnsupportedCompressionTypeError, match=f"codec {codec}"):
        decode(legacy_entry(0, None, b"value", magic=magic, attributes=codec))


def test_a_wrong_crc_is_found_unless_unwanted() -> None:
    log = legacy_entry(0, b"k", b"v", crc=7)
    with pytest.raises(CorruptRecordError, match="CRC of the entry"):
        decode(log)
    assert decode(log, check_crc=False)[0].value == b"v"


def test_fields_past_their_entry() -> None:
    for position, length in ((29, 9), (36, 2)):  # of the key, of the value
        entry = bytearray(legacy_entry(0, b"key", b"v"))
        entry[position] = length
        with pytest.raises(CorruptRecordError, match="past the end of their entry"):
            decode(resealed(bytes(entry)))


def test_bytes_behind_the_value_are_ignored_as_by_kafka() -> None:
    entry = bytearray(legacy_entry(0, b"key", b"value"))
    entry[36] = 2
    assert decode(resealed(bytes(entry)))[0].value == b"va"


def test_missing_bytes_are_an_error() -> None:
    log = legacy_entry(0, b"k", b"v") + legacy_entry(1, b"k", b"v")
    index = scan(log)
    for source, position in ((log[:-1], 0), (log, 1), (log, -1), (b"", 0)):
        with pytest.raises(CorruptRecordError):
            decode_legacy(source, index, b"\0\1", 1, 2, RecordColumns(), Decompressor(), position=position)
    with pytest.raises(IndexError):
        decode_legacy(log, index, b"\1\1", 0, 3, RecordColumns(), Decompressor())
    with pytest.raises(IndexError):
        decode_legacy(log, index, b"\1", 0, 2, RecordColumns(), Decompressor())


def test_an_entry_that_changed_under_the_index() -> None:
    index = scan(legacy_entry(0, b"k", b"v" * 50))
    shorter = legacy_entry(0, b"k", b"v" * 10).ljust(index[0].size, b"\0")
    with pytest.raises(CorruptRecordError, match="size of the entry"):
        decode_legacy(shorter, index, b"\1", 0, 1, RecordColumns(), Decompressor())
    later = b"\0" * 16 + b"\2" + bytes(index[0].size - 17)
    with pytest.raises(CorruptRecordError):
        decode_legacy(later, index, b"\1", 0, 1, RecordColumns(), Decompressor())


def verdict(log: bytes) -> list[Record] | None:
    try:
        return model(log)
    except InvalidBatchError:
        return None


def answer(log: bytes) -> list[Record] | None:
    try:
        return decode(log)
    except CorruptRecordError:
        return None


@pytest.mark.parametrize("name", NAMES)
def test_every_bit_and_every_length(name: str) -> None:
    log = VECTORS[name].log
    for length in range(len(log)):
        assert answer(log[:length]) == verdict(log[:length]), length
    for bit in range(8 * len(log)):
        damaged = bytearray(log)
        damaged[bit // 8] ^= 1 << bit % 8
        assert answer(bytes(damaged)) == verdict(bytes(damaged)), bit


@pytest.mark.parametrize("magic", [0, 1])
def test_every_bit_behind_a_right_crc(magic: int) -> None:
    inner = legacy_entry(0, b"key", b"value", magic=magic) + legacy_entry(1, None, b"", magic=magic)
    for bit in range(8 * len(inner)):
        damaged = bytearray(inner)
        damaged[bit // 8] ^= 1 << bit % 8
        log = legacy_entry(1, None, compress(1, bytes(damaged)), magic=magic, attributes=1)
        if answer(log) != verdict(log):
            with pytest.raises(CorruptRecordError, match=STRICTER):
                decode(log)
        first = legacy_entry(0, b"key", b"value", magic=magic)
        plain = resealed(bytes(damaged[: len(first)]))
        assert answer(plain) == verdict(plain), bit


def test_decompressed_bytes_are_bounded_in_one_call() -> None:
    big = legacy_wrapper([legacy_entry(0, None, bytes(9 << 20))], 0, codec=1)
    log = b"".join(struct.pack(">q", offset) + big[8:] for offset in range(1, 4))
    columns, index = RecordColumns(), scan(log)
    assert decode_legacy(log, index, b"\1" * 3, 0, 3, columns, Decompressor()) == 1
    assert len(columns) == 1
