"""The models agree with vectors that Kafka's own classes wrote, and with their answers."""

from __future__ import annotations

import pytest

from tests.models.builder import Batch, PlainRecord, end_marker, legacy_entry, legacy_wrapper
from tests.models.crc32c import crc32c, crc32c_bitwise
from tests.models.fetch_filter import (
    AbortedTxn,
    aborted_in,
    collect_aborted,
    decode_any,
    fetch,
    last_stable_offset,
    read_txn_index,
    scan_log,
)
from tests.models.record_batch import InvalidBatchError, Record, decode_batch
from tests.models.varint import VarintError, read_varint, read_varlong, write_varint, write_varlong
from tests.models.vectors import T0, VECTORS

ABORT, COMMIT = 0, 1


def records_in(log: bytes) -> list[Record]:
    headers, stop, end = scan_log(log)
    assert (stop, end) == ("end", len(log))
    return [record for h in headers for record in decode_any(log[h.position : h.position + h.size])]


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_read(name: str) -> None:
    assert records_in(VECTORS[name].log) == VECTORS[name].records


def test_vector_headers() -> None:
    (transactional,), _, _ = scan_log(VECTORS["transactional"].log)
    assert (transactional.producer_id, transactional.producer_epoch) == (4000, 7)
    assert (transactional.base_sequence, transactional.attributes) == (2**31 - 1, 0x10)
    for name, control_type in (("abort", ABORT), ("commit", COMMIT)):
        (marker,), _, _ = scan_log(VECTORS[name].log)
        assert (marker.control_type, marker.coordinator_epoch, marker.attributes) == (control_type, 42, 0x30)
    (empty,), _, _ = scan_log(VECTORS["retained empty"].log)
    assert (empty.base_offset, empty.last_offset, empty.count, empty.base_sequence) == (10, 14, 0, 20)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, T0)


PRODUCER = {"producer_id": 4000, "producer_epoch": 7, "partition_leader_epoch": 0}
BUILT = {
    "plain": Batch(
        records=[PlainRecord(b"k", b"v", 1000), PlainRecord(None, b"", 998), PlainRecord(b"", None, 1003)],
        base_offset=5,
        partition_leader_epoch=3,
    ).encode(),
    "headers": Batch(records=[PlainRecord(b"k", b"v", 1, [(b"h", b"x"), (b"", None), (b"h", b"")])]).encode(),
    "transactional": Batch(
        records=[PlainRecord(b"a", b"1", T0), PlainRecord(b"b", b"2", T0 + 1)],
        base_offset=10,
        base_sequence=2**31 - 1,
        transactional=True,
        **PRODUCER,
    ).encode(),
    "commit": end_marker(COMMIT, coordinator_epoch=42, timestamp=T0 + 2, base_offset=12, **PRODUCER),
    "abort": end_marker(ABORT, coordinator_epoch=42, timestamp=T0 + 2, base_offset=12, **PRODUCER),
    "log append time": Batch(
        records=[PlainRecord(b"k", b"v", 1), PlainRecord(b"k", b"w", 2)], log_append_time=7777
    ).encode(),
    "delete horizon": Batch(
        records=[PlainRecord(b"k", None, 1000)], delete_horizon=5000, partition_leader_epoch=0
    ).encode(),
    "retained empty": Batch(
        base_offset=10,
        last_offset_delta=4,
        base_sequence=20,
        transactional=True,
        max_timestamp=T0,
        **PRODUCER,
    ).encode(),
    "magic 0": legacy_entry(3, b"k", b"v", magic=0) + legacy_entry(4, None, b"w", magic=0),
    "magic 1": legacy_entry(3, b"k", b"v", timestamp=1000) + legacy_entry(4, b"k", None, timestamp=1001),
}


@pytest.mark.parametrize("name", BUILT)
def test_the_builder_writes_what_kafka_writes(name: str) -> None:
    assert BUILT[name].hex() == VECTORS[name].log.hex()


def test_crc32c() -> None:
    assert crc32c(b"123456789") == crc32c_bitwise(b"123456789") == 0xE3069283
    assert crc32c(b"56789", crc32c(b"1234")) == 0xE3069283
    assert crc32c(b"") == crc32c_bitwise(b"") == 0


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), 2**35, 2**63 - 1, -(2**63)])
def test_varints_return(value: int) -> None:
    assert read_varlong(write_varlong(value), 0) == (value, len(write_varlong(value)))
    if -(2**31) <= value < 2**31:
        assert read_varint(write_varint(value), 0) == (value, len(write_varint(value)))


def test_varint_rules() -> None:
    assert read_varint(b"\x82\x80\x00", 0) == (1, 3)
    assert read_varint(b"\x80\x80\x80\x80\x70", 0) == (0, 5)
    for bad in (b"", b"\x80", b"\xff\xff\xff\xff\x8f\x00"):
        with pytest.raises(VarintError):
            read_varint(bad, 0)
    assert read_varlong(b"\x80" * 9 + b"\x7e", 0) == (0, 10)
    with pytest.raises(VarintError):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


RECORD = bytes.fromhex("10 00 00 00 02 6b 02 76 00")


def batch_of(payload: bytes, **fields: int) -> bytes:
    return Batch(payload=payload, base_timestamp=1000, **{"count": 1, **fields}).encode()


def test_odd_records_that_are_accepted() -> None:
    record = decode_batch(batch_of(RECORD))[0]
    assert decode_batch(batch_of(RECORD[:1] + b"\xff" + RECORD[2:])) == [record]
    needless_bytes = bytes.fromhex("12 00 80 00 00 02 6b 02 76 00")
    assert decode_batch(batch_of(needless_bytes)) == [record]
    null_by_any_negative_length = bytes.fromhex("0c 00 00 00 05 07 00")
    assert decode_batch(batch_of(null_by_any_negative_length))[0][3:5] == (None, None)
    beyond = bytes.fromhex("10 00 00 0e 02 6b 02 76 00")
    assert decode_batch(batch_of(beyond))[0].offset == 7


BAD_PAYLOADS = {
    "longer than it says": b"\x0e" + RECORD[1:],
    "shorter than it says": b"\x12" + RECORD[1:] + b"\0",
    "negative length": b"\x01" + RECORD[1:],
    "cut": RECORD[:-1],
    "no record": b"",
    "bytes behind": RECORD + b"\0",
    "another record": RECORD + RECORD,
    "negative header count": RECORD[:-1] + b"\x01",
    "more headers than bytes": RECORD[:-1] + b"\x02",
    "null header key": bytes.fromhex("14 00 00 00 02 6b 02 76 02 01 00"),
    "key past the record": bytes.fromhex("10 00 00 00 40 6b 02 76 00"),
}


@pytest.mark.parametrize("payload", BAD_PAYLOADS.values(), ids=BAD_PAYLOADS)
def test_records_that_are_rejected(payload: bytes) -> None:
    with pytest.raises(InvalidBatchError):
        decode_batch(batch_of(payload))


def test_batches_that_are_rejected() -> None:
    for fields in ({"count": 2}, {"count": -1}, {"crc": 1}, {"codec": 5}, {"codec": 7}, {"magic": 3}):
        with pytest.raises(InvalidBatchError):
            decode_batch(batch_of(RECORD, **fields))
    with pytest.raises(InvalidBatchError):
        decode_batch(batch_of(RECORD)[:-1])


def wrapper(*offsets: int, offset: int, **fields: int) -> bytes:
    entries = [legacy_entry(each, None, b"%d" % each, timestamp=each) for each in offsets]
    return legacy_wrapper(entries, offset, codec=1, **fields)


def test_wrapper_offsets_and_times() -> None:
    assert [r.offset for r in decode_any(wrapper(0, 1, 2, offset=12))] == [10, 11, 12]
    assert [r.offset for r in decode_any(wrapper(0, 2, offset=12))] == [10, 12]
    assert [r.offset for r in decode_any(wrapper(0, 1, offset=0))] == [0, 1], "librdkafka's producers"
    own = decode_any(wrapper(0, 1, offset=5, timestamp=99))
    assert [(r.timestamp, r.timestamp_type) for r in own] == [(0, 0), (1, 0)]
    append = decode_any(wrapper(0, 1, offset=5, timestamp=99, log_append_time=True))
    assert [(r.timestamp, r.timestamp_type) for r in append] == [(99, 1)] * 2


def test_wrappers_that_are_rejected() -> None:
    nested = legacy_wrapper([wrapper(0, offset=0)], 0, codec=1)
    for bad in (
        wrapper(0, 7, offset=5),
        wrapper(offset=5),
        nested,
        legacy_entry(1, None, None, attributes=1),
    ):
        with pytest.raises(InvalidBatchError):
            decode_any(bad)
    with pytest.raises(InvalidBatchError):
        decode_any(legacy_entry(1, None, b"v", crc=1))


@pytest.mark.parametrize(
    ("tail", "stop"),
    [
        (b"", "end"),
        (bytes(5), "zeros"),
        (bytes(100), "zeros"),
        (b"\1", "torn"),
        (BUILT["plain"][:-1], "torn"),
        (BUILT["magic 1"][:20], "torn"),
        (b"garbage! " * 10, "torn"),
        (bytes(8) + b"\0\0\0\x0d" + bytes(50), "garbage"),
        (bytes(8) + b"\0\0\0\x30" + bytes(4) + b"\2" + bytes(50), "garbage"),
        (bytes(8) + b"\0\0\0\x40" + bytes(4) + b"\3" + bytes(80), "garbage"),
        (b"\xff" + BUILT["plain"][1:], "garbage"),
    ],
)
def test_why_a_scan_stops(tail: bytes, stop: str) -> None:
    log = BUILT["plain"] + BUILT["magic 1"]
    headers, reason, position = scan_log(log + tail)
    assert (len(headers), reason, position) == (3, stop, len(log))


def test_a_bad_magic_with_a_good_crc_keeps_its_place() -> None:
    headers, stop, _ = scan_log(batch_of(RECORD, magic=9) + BUILT["plain"])
    assert ([header.magic for header in headers], stop) == ([127, 2], "end")


def data(offset: int, producer_id: int) -> bytes:
    transactional = producer_id >= 0
    record = PlainRecord(None, b"%d" % offset)
    return Batch(
        records=[record], base_offset=offset, producer_id=producer_id, transactional=transactional
    ).encode()


LOG = b"".join(
    [
        data(0, 1),
        data(1, 2),
        data(2, -1),
        end_marker(ABORT, producer_id=1, base_offset=3),
        data(4, 1),
        end_marker(COMMIT, producer_id=1, base_offset=5),
        data(6, 1),
        end_marker(ABORT, producer_id=2, base_offset=7),
        data(8, 3),
    ]
)
ABORTED = [AbortedTxn(1, 0, 3, 1), AbortedTxn(2, 1, 7, 6)]


def offsets(start: int, end: int, aborted: list[AbortedTxn] | None) -> list[int]:
    return [record.offset for record in fetch(LOG, scan_log(LOG)[0], start, end, aborted)]


def test_the_consumers_filter() -> None:
    assert aborted_in(scan_log(LOG)[0]) == ABORTED
    assert last_stable_offset(scan_log(LOG)[0], 9) == 6
    assert offsets(0, 9, None) == [0, 1, 2, 4, 6, 8], "control records are never returned"
    assert offsets(0, 6, ABORTED) == [2, 4]
    assert offsets(1, 6, ABORTED) == [2, 4], "from the middle of an aborted transaction"
    assert offsets(3, 9, collect_aborted(ABORTED, 3, 9)) == [4, 6, 8]
    assert offsets(0, 9, []) == [0, 1, 2, 4, 6, 8], "without the list nothing is hidden"


def test_the_aborted_list_of_a_fetch() -> None:
    assert collect_aborted(ABORTED, 0, 1) == ABORTED[:1]
    assert collect_aborted(ABORTED, 4, 6) == ABORTED[1:]
    assert collect_aborted(ABORTED, 8, 9) == []
    entry = bytes.fromhex("0000" + "0000000000000001" + "0" * 16 + "0000000000000003" + "0000000000000001")
    assert read_txn_index(entry + entry[:20]) == ABORTED[:1]


def test_compacted_batches_and_gaps() -> None:
    records = [PlainRecord(b"k", b"v", offset_delta=2), PlainRecord(b"l", b"w", offset_delta=5)]
    log = Batch(records=records, base_offset=10, last_offset_delta=9).encode() + data(30, -1)
    headers, _, _ = scan_log(log)
    assert [record.offset for record in fetch(log, headers, 0, 40, None)] == [12, 15, 30]
    assert [record.offset for record in fetch(log, headers, 13, 15, None)] == []
    assert [record.offset for record in fetch(log, headers, 13, 31, None)] == [15, 30]
