"""Magic 2 batches to columns: which are decoded, which are refused; a batch is decoded whole or not at
all."""

from __future__ import annotations

from array import array

import pytest

from tests.models.builder import Batch, PlainRecord, encode_record
from tests.models.varint import write_varint
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import check_crcs, corrupt_batch, decode_batches, decode_regions
from txnkafka._core.runs import next_run
from txnkafka._core.scan import scan
from txnkafka.errors import CorruptRecordError

GOOD = [PlainRecord(b"k", b"v", 5), PlainRecord(b"l", b"w", 6)]


def offsets(columns: RecordColumns) -> list[int]:
    return memoryview(columns.offsets).tolist()


def decode(data: bytes, selection: bytes | None = None, **options: int) -> RecordColumns:
    index = scan(data)
    columns = RecordColumns(headers=True)
    decode_batches(data, index, selection or b"\1" * len(index), 0, len(index), columns, **options)
    return columns


def payload(*records: bytes) -> bytes:
    return b"".join(write_varint(len(record)) + record for record in records)


RECORD = encode_record(PlainRecord(b"k", b"v"), base_timestamp=0, offset_delta=0)[1:]

REFUSED = {
    "length is negative": (write_varint(-1) + RECORD, 1),
    "reaches past the end of its batch": (write_varint(100) + RECORD, 1),
    "does not fit into the record": (payload(b"\0\0\0\x10k\2v\0"), 1),
    "header count is negative": (payload(b"\0\0\0\2k\2v\1"), 1),
    "header count is negative or larger": (payload(b"\0\0\0\2k\2v\x40"), 1),
    "header key has a negative length": (payload(b"\0\0\0\2k\2v\2\1\1"), 1),
    "longer than its fields": (payload(RECORD + b"\0"), 1),
    "fewer records than its header says": (payload(RECORD), 2),
    "bytes are left after the last record": (payload(RECORD, RECORD), 1),
    "fewer records": (payload(RECORD), -1),
    "a field of a record does not fit": (payload(b"\0\0\0\x80\x80\x80\x80\x80\0kvvv"), 1),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_the_full_reader_refuses(reason: str) -> None:
    content, count = REFUSED[reason]
    bad = Batch(payload=content, count=count, base_offset=2, last_offset_delta=1).encode()
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode(bad)
    assert (caught.value.position, caught.value.offset) == (0, 2)


@pytest.mark.parametrize("reason", REFUSED)
def test_good_batches_before_a_bad_one_are_delivered_first(reason: str) -> None:
    content, count = REFUSED[reason]
    good = Batch(records=GOOD).encode()
    bad = Batch(payload=content, count=count, base_offset=2, last_offset_delta=1).encode()
    data = good + bad + Batch(records=GOOD, base_offset=4).encode()
    index, columns = scan(data), RecordColumns(headers=True)
    assert decode_batches(data, index, b"\1\1\1", 0, 3, columns) == 1
    assert offsets(columns) == [0, 1]
    with pytest.raises(CorruptRecordError) as caught:
        decode_batches(data, index, b"\1\1\1", 1, 3, columns)
    assert caught.value.position == len(good)
    assert offsets(columns) == [0, 1]
    assert decode_batches(data, index, b"\1\0\1", 1, 3, columns) == 3
    assert offsets(columns) == [0, 1, 4, 5]


def test_a_bad_batch_leaves_no_trace_in_the_bitmaps() -> None:
    record = encode_record(PlainRecord(None, None, 0, [(b"h", None)]), base_timestamp=0, offset_delta=0)
    data = Batch(records=GOOD).encode() + Batch(payload=record + b"\7", count=2, base_offset=2).encode()
    index, columns = scan(data), RecordColumns(headers=True)
    assert decode_batches(data, index, b"\1\1", 0, 2, columns) == 1
    assert (columns.key_null_count, columns.value_null_count, columns.header_value_null_count) == (0, 0, 0)
    more = Batch(records=[*GOOD, PlainRecord(None, b"x", 0, [(b"h", b"x")])]).encode()
    decode_batches(more, scan(more), b"\1", 0, 1, columns)
    assert columns.key_null_count == 1
    assert memoryview(columns.key_validity).tolist()[0] & 0b11111 == 0b01111


def test_crc_and_magic() -> None:
    data = bytearray(Batch(records=GOOD).encode())
    data[-1] ^= 1
    with pytest.raises(CorruptRecordError, match=r"CRC of the batch does not match"):
        decode(bytes(data))
    with pytest.raises(CorruptRecordError, match=r"longer than its fields|does not fit|header count"):
        decode(bytes(data), check_crc=False)
    magic = bytearray(Batch(records=GOOD).encode())
    magic[16] = 4
    with pytest.raises(CorruptRecordError, match="magic byte of the batch is not 0, 1 or 2"):
        decode(bytes(magic))


def test_an_empty_batch_is_never_looked_into() -> None:
    assert offsets(decode(Batch(payload=b"\xff\xff", count=0, last_offset_delta=3).encode())) == []


def test_log_append_time_and_delete_horizon() -> None:
    append = decode(Batch(records=GOOD, log_append_time=77).encode())
    assert memoryview(append.timestamps).tolist() == [77, 77]
    assert memoryview(append.run_timestamp_types).tolist() == [1]
    assert memoryview(decode(Batch(records=GOOD, delete_horizon=9000).encode()).timestamps).tolist() == [5, 6]


def test_bounded_batches_and_overlaps() -> None:
    data = Batch(records=GOOD * 3, base_offset=10).encode() + Batch(records=GOOD * 2, base_offset=14).encode()
    assert offsets(decode(data, b"\2\2", start_offset=11, end_offset=16)) == [11, 12, 13, 14, 15]
    assert offsets(decode(data, b"\1\2")) == [10, 11, 12, 13, 14, 15, 16, 17]


def test_headers_of_records_that_are_left_out_are_left_out() -> None:
    records = [PlainRecord(b"k", b"v", 0, [(b"%d" % i, None if i % 2 else b"x%d" % i)]) for i in range(6)]
    columns = decode(Batch(records=records).encode(), b"\2", start_offset=1, end_offset=5)
    assert offsets(columns) == [1, 2, 3, 4]
    assert bytes(columns.header_key_data) == b"1234"
    assert bytes(columns.header_value_data) == b"x2x4"
    assert columns.header_value_null_count == 2
    assert memoryview(columns.header_value_validity).tolist()[0] & 0b1111 == 0b1010


def test_extreme_deltas_wrap_and_do_not_trap() -> None:
    top = (1 << 63) - 1
    record = encode_record(PlainRecord(b"", b"", top), base_timestamp=0, offset_delta=2**31 - 1)
    data = Batch(payload=record, count=1, base_timestamp=1, base_offset=5).encode()
    columns = decode(data)
    assert memoryview(columns.timestamps).tolist() == [-(1 << 63)]
    assert offsets(columns) == [5 + 2**31 - 1]


def test_regions_of_decompressed_records() -> None:
    records = [encode_record(each, base_timestamp=5, offset_delta=i) for i, each in enumerate(GOOD)]
    content = b"".join(records)
    data = Batch(records=GOOD, codec=1).encode() * 2
    index, columns = scan(data), RecordColumns()
    buffer = b"xx" + content + content
    regions = array("q", [2, 2 + len(content), 2 + len(content), 2 + 2 * len(content)])
    assert decode_regions(buffer, regions, index, b"\1\1", 0, 2, columns) == 2
    assert offsets(columns) == [0, 1, 0, 1]
    with pytest.raises(ValueError, match=r"region 3\.\.999 lies outside"):
        decode_regions(buffer, array("q", [3, 999]), index, b"\1", 0, 1, columns)
    with pytest.raises(ValueError, match="a begin and an end for each batch"):
        decode_regions(buffer, array("q", [3]), index, b"\1", 0, 1, columns)


def test_compressed_and_old_batches_are_not_taken_for_plain_ones() -> None:
    with pytest.raises(CorruptRecordError, match="its records were not prepared"):
        decode(Batch(records=GOOD, codec=1).encode())


def test_next_run_keeps_kinds_and_sizes_apart() -> None:
    plain, packed = Batch(records=GOOD).encode(), Batch(records=GOOD, codec=2).encode()
    index = scan(plain * 3 + packed * 2 + plain)
    size = len(plain)
    assert next_run(index, b"\1" * 6, 0, 6, 1 << 20) == (0, 3, 0)
    assert next_run(index, b"\1" * 6, 0, 6, 2 * size) == (0, 2, 0)
    assert next_run(index, b"\1" * 6, 0, 6, 1) == (0, 1, 0)
    assert next_run(index, b"\1" * 6, 3, 6, 1 << 20) == (3, 5, 1)
    compressed = index[3].size + index[4].size
    assert next_run(index, b"\1" * 6, 3, 6, 4 * compressed) == (3, 5, 1)
    assert next_run(index, b"\1" * 6, 3, 6, 4 * compressed - 1) == (3, 4, 1)
    assert next_run(index, b"\0\1\0\0\0\1", 0, 6, 1 << 20) == (1, 6, 0)
    assert next_run(index, b"\0\1\0\0\0\1", 0, 6, size // 2) == (1, 5, 0)
    assert next_run(index, b"\0" * 6, 0, 6, 1) == (6, 6, 0)


def test_check_crcs_and_corrupt_batch() -> None:
    data = bytearray(Batch(records=GOOD).encode() * 3)
    data[-1] ^= 1
    index = scan(data)
    assert check_crcs(data, index, 0, 3) == 2
    assert check_crcs(data, index, 0, 3, b"\1\1\0") == 3
    assert check_crcs(data[len(data) // 3 :], index, 1, 3, position=len(data) // 3) == 2
    assert "CRC" in str(corrupt_batch(index, 2))
    assert corrupt_batch(index, 2, "because").position == 2 * len(data) // 3


def test_misuse_is_an_error_and_no_crash() -> None:
    data = Batch(records=GOOD).encode()
    index, columns = scan(data), RecordColumns()
    with pytest.raises(IndexError, match="batches 0 to 2 of 1"):
        decode_batches(data, index, b"\1\1", 0, 2, columns)
    for number in (-1, 1, 2**40):
        with pytest.raises(IndexError, match="of 1"):
            corrupt_batch(index, number)
    with pytest.raises(ValueError, match="the selection covers 0 batches, not 1"):
        decode_batches(data, index, b"", 0, 1, columns)
    with pytest.raises(CorruptRecordError, match="outside the bytes at hand"):
        decode_batches(data[:-1], index, b"\1", 0, 1, columns)
    with pytest.raises(CorruptRecordError, match="outside the bytes at hand"):
        decode_batches(data, index, b"\1", 0, 1, columns, position=5)
    with pytest.raises(CorruptRecordError, match="outside the bytes at hand"):
        decode_batches(data[:-1], index, b"\1", 0, 1, columns, check_crc=False)


def test_an_impossible_count_allocates_nothing() -> None:
    columns = RecordColumns()
    data = Batch(payload=b"\0" * 20, count=2**31 - 1).encode()
    with pytest.raises(CorruptRecordError, match="fewer records"):
        decode_batches(data, scan(data), b"\1", 0, 1, columns)
    assert columns.nbytes < 100_000
