"""Encoded batches equal those of Kafka's own classes; refused input; changes in place."""

from __future__ import annotations

import re
import threading
from array import array
from typing import Any

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.models.columns import columns_of
from tests.models.vectors import T0, VECTORS
from txnkafka._core.crc32c import crc32c
from txnkafka._core.encode import (
    assign,
    empty_batch,
    encode_batch,
    end_txn_marker,
    replace_payload,
    set_max_timestamp,
    set_producer,
)
from txnkafka._core.record_input import InputColumns, InputRecords
from txnkafka.errors import InvalidRecordError, MessageTooLargeError

PRODUCER = {"producer_id": 4000, "producer_epoch": 7}
ENCODED = {
    "plain": (
        [(b"k", b"v", 1000), (None, b"", 998), (b"", None, 1003, [])],
        {"base_offset": 5, "partition_leader_epoch": 3},
    ),
    "headers": ([(b"k", b"v", 1, [("h", b"x"), (b"", None), ("h", b"")])], {}),
    "transactional": (
        [(b"a", b"1", T0), (b"b", b"2", T0 + 1)],
        {
            "base_offset": 10,
            "base_sequence": 2**31 - 1,
            "transactional": True,
            "partition_leader_epoch": 0,
            **PRODUCER,
        },
    ),
    "log append time": ([(b"k", b"v", 1), (b"k", b"w", 2)], {"log_append_time": 7777}),
    "delete horizon": ([(b"k", None, 1000)], {"delete_horizon": 5000, "partition_leader_epoch": 0}),
}


def of_tuples(records: list[Any]) -> list[PlainRecord]:
    return [
        PlainRecord(key, value, timestamp, [(bytes(name, "utf-8") if type(name) is str else name, content)
                                            for headers in rest for name, content in headers])
        for key, value, timestamp, *rest in records
    ]  # fmt: skip


@pytest.mark.parametrize("name", ENCODED)
def test_vectors_are_written(name: str) -> None:
    records, fields = ENCODED[name]
    assert encode_batch(records, **fields) == VECTORS[name].log
    assert encode_batch(iter(records), **fields) == VECTORS[name].log
    assert encode_batch(InputColumns(**columns_of(of_tuples(records))), **fields) == VECTORS[name].log


@pytest.mark.parametrize(("name", "commit"), [("commit", True), ("abort", False)])
def test_markers_are_written(name: str, commit: bool) -> None:
    marker = end_txn_marker(
        base_offset=12,
        timestamp=T0 + 2,
        coordinator_epoch=42,
        commit=commit,
        partition_leader_epoch=0,
        **PRODUCER,
    )
    assert marker == VECTORS[name].log
    assert len(marker) == 78


def test_a_marker_needs_a_producer() -> None:
    with pytest.raises(ValueError, match="needs a producer id"):
        end_txn_marker(
            base_offset=0, timestamp=0, producer_id=-1, producer_epoch=-1, coordinator_epoch=0, commit=True
        )


def test_the_empty_batch_that_compaction_keeps_is_written() -> None:
    fields = {"base_sequence": 20, "transactional": True, "partition_leader_epoch": 0, **PRODUCER}
    batch = empty_batch(base_offset=10, last_offset=14, max_timestamp=T0, **fields)
    assert batch == VECTORS["retained empty"].log
    control = empty_batch(
        base_offset=3, last_offset=3, max_timestamp=-1, timestamp_type=1, control=True, transactional=True
    )
    assert control[21:23] == b"\x00\x38"
    for last_offset in (9, 10 + 2**31):
        with pytest.raises(ValueError, match="cannot reach"):
            empty_batch(base_offset=10, last_offset=last_offset, max_timestamp=0)


def test_no_records_give_no_bytes() -> None:
    assert encode_batch([]) == b""
    assert encode_batch(InputColumns(timestamps=array("q"))) == b""
    assert encode_batch([(b"k", b"v", 0)], start=1) == b""


def small_records(count: int) -> list[PlainRecord]:
    """Return records whose lengths and times come from fixed seeds: mostly small ones, some large."""
    lengths = [(i * 37 % 90, i * 53 % 150) for i in range(count)]
    lengths[count // 2] = (3000, 10)
    return [PlainRecord(b"k" * key, b"v" * value, T0 + i * 7 % 300) for i, (key, value) in enumerate(lengths)]


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 255, 256, 257, 600, 8191, 8192, 8193, 9000])
def test_many_records_are_written_as_the_model_writes_them(count: int) -> None:
    """Offset deltas of one, two and three bytes, blocks with and without a large record."""
    records = small_records(count)
    expected = Batch(records=records).encode()
    assert encode_batch(InputColumns(**columns_of(records))) == expected
    assert encode_batch([record[:3] for record in records]) == expected


@pytest.mark.parametrize("names", [["key"], ["value"], ["key", "value"]])
def test_a_column_without_offsets_is_null_throughout(names: list[str]) -> None:
    records = [PlainRecord(b"k", b"v", i) for i in range(20)]
    columns = columns_of(records)
    for name in names:
        columns[f"{name}_offsets"] = columns[f"{name}_data"] = None
    nulls = dict.fromkeys(names)
    expected = Batch(records=[record._replace(**nulls) for record in records])
    assert encode_batch(InputColumns(**columns)) == expected.encode()


def test_every_bytes_like_object_is_used_without_a_copy() -> None:
    value = bytearray(b"value")
    records = InputRecords([(memoryview(b"key"), value, 1, ((memoryview(b"n"), array("B", b"w")),))])
    with pytest.raises(BufferError):
        value.clear()  # its size cannot change while it waits to be encoded
    value[0:1] = b"V"
    expected = Batch(records=[PlainRecord(b"key", b"Value", 1, [(b"n", b"w")])]).encode()
    assert encode_batch(records) == expected
    assert len(records) == 1


def shown(value: Any) -> str:
    """Return a part of the name of a test: the same in each process."""
    return re.sub(r" at 0x\w+", "", str(value))[:40]


REFUSED_RECORDS: list[tuple[Any, type[Exception], str]] = [
    ((b"k", b"v"), TypeError, "record 1 must be a tuple"),
    ([b"k", b"v", 0], TypeError, "record 1 must be a tuple"),
    ((b"k", b"v", 0, [], 1), TypeError, "record 1 must be a tuple"),
    (("k", b"v", 0), TypeError, "key of record 1 must be bytes or None, not str"),
    ((b"k", 5, 0), TypeError, "value of record 1 must be bytes or None, not int"),
    ((b"k", memoryview(b"abcd")[::2], 0), ValueError, "value of record 1 is not contiguous"),
    ((b"k", b"v", -2), ValueError, "record 1 has the timestamp -2"),
    ((b"k", b"v", 2**63), ValueError, "record 1 has the timestamp 9223372036854775808"),
    ((b"k", b"v", None), TypeError, "record 1 has the timestamp None"),
    ((b"k", b"v", 1.5), TypeError, "record 1 has the timestamp 1.5"),
    ((b"k", b"v", 0, [(None, b"")]), TypeError, "a header of record 1 has no name"),
    ((b"k", b"v", 0, [("n", "v")]), TypeError, "value of a header of record 1"),
    ((b"k", b"v", 0, [("n",)]), ValueError, "values? to unpack"),
    ((b"k", b"v", 0, [("\ud800", b"")]), ValueError, "surrogates"),
]


@pytest.mark.parametrize(("record", "error", "text"), REFUSED_RECORDS, ids=shown)
def test_tuples_that_are_no_records_are_refused(record: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        encode_batch([(b"k", b"v", 0), record])


REFUSED_FIELDS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"transactional": True}, ValueError, "needs a producer id"),
    ({"producer_id": 1, "base_sequence": 0}, ValueError, "needs an epoch"),
    ({"producer_id": 1, "producer_epoch": 0}, ValueError, "needs a sequence"),
    ({"producer_epoch": 1 << 15}, OverflowError, "int16"),
    ({"base_offset": -1}, ValueError, "from -1 on"),
    ({"start": 2}, IndexError, "records 2 to None of 1"),
    ({"start": -1}, IndexError, "records -1 to None of 1"),
    ({"stop": 2}, IndexError, "records 0 to 2 of 1"),
    ({"last_offset": -1}, ValueError, "below the base offset"),
]


@pytest.mark.parametrize(("fields", "error", "text"), REFUSED_FIELDS, ids=shown)
def test_fields_that_kafkas_builder_refuses_are_refused(
    fields: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        encode_batch([(b"k", b"v", 0)], **fields)


def test_a_control_batch_needs_no_sequence() -> None:
    batch = encode_batch([(b"k", b"v", 0)], control=True, producer_id=1, producer_epoch=0)
    expected = Batch(records=[PlainRecord(b"k", b"v")], control=True, producer_id=1, producer_epoch=0)
    assert batch == expected.encode()


GOOD = columns_of([PlainRecord(b"k", b"v", i, [(b"n", b"w")]) for i in range(3)])
REFUSED_COLUMNS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"timestamps": array("i", [0, 0, 0])}, TypeError, "timestamps must be int64"),
    ({"timestamps": b"12345678"}, TypeError, "format 'B'"),
    ({"timestamps": array("d", [0.0])}, TypeError, "format 'd'"),
    ({"timestamps": array("Q", [0])}, TypeError, "format 'Q'"),
    ({"timestamps": memoryview(array("q", range(6)))[::2]}, ValueError, "timestamps is not contiguous"),
    ({"timestamps": array("q", [0, -2, 0])}, ValueError, "record 1 has the timestamp -2"),
    ({"offsets": array("q", [0, 1])}, ValueError, "offsets has 2 numbers, 3 are needed"),
    ({"offsets": array("q", [0, 2, 2])}, ValueError, "the offset of record 2"),
    ({"offsets": array("q", [0, 1, 2**31])}, ValueError, "the offset of record 2"),
    ({"offsets": array("q", [-1, 0, 1])}, ValueError, "the offset of record 0"),
    ({"key_offsets": array("i", [0, 1, 2])}, ValueError, "key_offsets has 3 numbers, 4 are needed"),
    ({"key_offsets": array("i", [0, 1, 2, 4])}, ValueError, "a column at record 2"),
    ({"key_offsets": array("i", [0, 2, 1, 3])}, ValueError, "a column at record 1"),
    ({"key_offsets": array("q", [-1, 0, 1, 2])}, ValueError, "a column at record 0"),
    ({"value_offsets": array("i", [-1, 0, 1, 2])}, ValueError, "a column at record 0"),
    ({"value_offsets": array("q", [0, 1, 2, 2**62])}, ValueError, "a column at record 2"),
    ({"value_offsets": None}, TypeError, "value_data and value_validity need value_offsets"),
    ({"value_data": None}, ValueError, "a column at record 0"),
    ({"value_validity": b""}, ValueError, "value_validity has 0 bytes"),
    ({"header_offsets": array("i", [0, 1, 2, 4])}, ValueError, "header_offsets at record 2"),
    ({"header_offsets": array("i", [0, 2, 1, 3])}, ValueError, "header_offsets at record 1"),
    ({"header_offsets": None}, TypeError, "header_offsets are needed"),
    ({"header_key_offsets": None}, TypeError, "never null"),
    ({"header_value_data": b"w"}, ValueError, "a column at record 1"),
]


@pytest.mark.parametrize(("changed", "error", "text"), REFUSED_COLUMNS, ids=shown)
def test_columns_that_do_not_fit_together_are_refused(
    changed: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        encode_batch(InputColumns(**GOOD | changed))


def test_a_too_large_batch_is_refused_before_memory_is_allocated() -> None:
    gigabyte = bytes(1 << 30)  # its pages are never touched, so it uses no memory
    with pytest.raises(MessageTooLargeError, match=r"record 1 .* write several batches"):
        encode_batch([(None, gigabyte, 0), (None, gigabyte, 0)])
    with pytest.raises(MessageTooLargeError, match="record 0"):
        encode_batch([(None, None, 0, [("a", gigabyte), ("b", gigabyte)])])
    columns = InputColumns(
        timestamps=array("q", [0, 0]),
        key_offsets=array("q", [0, 0, 1 << 30]),
        key_data=gigabyte,
        value_offsets=array("q", [0, 1 << 30, 1 << 30]),
        value_data=gigabyte,
    )
    with pytest.raises(MessageTooLargeError, match="record 1"):
        encode_batch(columns)


def test_columns_that_change_meanwhile_give_an_error_or_a_mixture_never_a_crash() -> None:
    count = 20_000
    values = array("i", [50 * i for i in range(count + 1)])
    columns = InputColumns(
        timestamps=array("q", [0] * count), value_offsets=values, value_data=bytes(50 * count)
    )
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for i in range(1, count, 97):
                values[i] ^= 0x30
            values[count // 2] = -5
            values[count // 2] = 50 * (count // 2)

    other = threading.Thread(target=change)
    other.start()
    outcomes = set()
    try:
        for _ in range(60):
            try:
                outcomes.add(type(encode_batch(columns)))
            except ValueError as error:
                outcomes.add(type(error))
    finally:
        stop.set()
        other.join()
    assert outcomes <= {bytearray, ValueError}


# Changes in place


def test_base_offset_and_leader_epoch_leave_the_crc_alone() -> None:
    batch = bytearray(VECTORS["plain"].log)
    assign(batch, base_offset=2**63 - 10, partition_leader_epoch=77)
    records = of_tuples(ENCODED["plain"][0])
    expected = Batch(records=records, base_offset=2**63 - 10, partition_leader_epoch=77)
    assert batch == expected.encode()


def test_a_transaction_can_be_joined_and_left_in_place() -> None:
    batch = encode_batch([(b"a", b"1", T0), (b"b", b"2", T0 + 1)], base_offset=10, partition_leader_epoch=0)
    before = bytes(batch)
    set_producer(batch, base_sequence=2**31 - 1, transactional=True, **PRODUCER)
    assert batch == VECTORS["transactional"].log
    set_producer(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False)
    assert batch == before


def test_a_producer_stays_transactional_by_default() -> None:
    batch = bytearray(VECTORS["transactional"].log)
    set_producer(batch, producer_id=1, producer_epoch=2, base_sequence=3)
    assert batch[21:23] == b"\0\x10"
    with pytest.raises(ValueError, match="needs a producer id"):
        set_producer(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1)
    with pytest.raises(ValueError, match="needs a sequence"):
        set_producer(batch, producer_id=1, producer_epoch=2, base_sequence=-1)


def test_the_append_time_is_set_in_place() -> None:
    batch = encode_batch(ENCODED["log append time"][0])
    created = bytes(batch)
    set_max_timestamp(batch, timestamp_type=1, max_timestamp=7777)
    assert batch == VECTORS["log append time"].log
    set_max_timestamp(batch, timestamp_type=0, max_timestamp=2)
    assert batch == created


def test_bits_without_a_meaning_go_where_the_timestamp_changes_and_only_there() -> None:
    odd = Batch(records=[PlainRecord(b"k", b"v", 5)], more_attributes=0x7F80)
    batch = bytearray(odd.encode())
    set_max_timestamp(batch, timestamp_type=0, max_timestamp=5)
    assert batch == odd.encode()
    set_max_timestamp(batch, timestamp_type=0, max_timestamp=6)
    assert batch == Batch(records=odd.records, max_timestamp=6).encode()
    with pytest.raises(ValueError, match="not a timestamp type"):
        set_max_timestamp(batch, timestamp_type=-1, max_timestamp=6)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_535, 65_536, 1 << 24, (1 << 24) + 12_345])
def test_the_crc_is_right_for_any_number_of_bytes_after_a_change(size: int) -> None:
    batch = encode_batch([(None, bytes(size), 0)])
    set_producer(batch, base_sequence=9, transactional=True, **PRODUCER)
    assert int.from_bytes(batch[17:21], "big") == crc32c(memoryview(batch)[21:])


def test_damage_is_not_made_good_by_a_change() -> None:
    batch = bytearray(VECTORS["transactional"].log)
    batch[-2] ^= 1
    set_producer(batch, producer_id=1, producer_epoch=2, base_sequence=3)
    assert int.from_bytes(batch[17:21], "big") != crc32c(memoryview(batch)[21:])


CHANGES: list[tuple[Any, dict[str, int]]] = [
    (assign, {"base_offset": 1, "partition_leader_epoch": 1}),
    (set_producer, {"producer_id": 1, "producer_epoch": 1, "base_sequence": 1}),
    (set_max_timestamp, {"timestamp_type": 1, "max_timestamp": 1}),
]
PLAIN = VECTORS["plain"].log
NOT_A_BATCH = [
    (b"", 0),
    (PLAIN[:-1], 0),
    (PLAIN[:60], 0),
    (PLAIN, 1),
    (PLAIN, -1),
    (PLAIN, len(PLAIN)),
    (PLAIN, 2**62),
    (VECTORS["magic 1"].log * 3, 0),
    (PLAIN[:8] + b"\0\0\0\x30" + PLAIN[12:], 0),
    (PLAIN[:8] + b"\xff" * 4 + PLAIN[12:], 0),
    (PLAIN[:8] + b"\x7f" + b"\xff" * 3 + PLAIN[12:], 0),
]


@pytest.mark.parametrize(("change", "fields"), CHANGES)
@pytest.mark.parametrize(("content", "position"), NOT_A_BATCH)
def test_bytes_that_are_no_batch_are_refused_and_not_changed(
    change: Any, fields: dict[str, int], content: bytes, position: int
) -> None:
    buffer = bytearray(content)
    with pytest.raises(InvalidRecordError, match=f"at byte {position} of {len(content)}"):
        change(buffer, position, **fields)
    assert buffer == content
    buffer.clear()  # the encoder released it


@pytest.mark.parametrize(("change", "fields"), CHANGES)
def test_only_writable_memory_can_be_changed(change: Any, fields: dict[str, int]) -> None:
    with pytest.raises(BufferError):
        change(PLAIN, **fields)


def test_a_payload_is_replaced_behind_the_same_header() -> None:
    batch = replace_payload(VECTORS["gzip"].log, b"records", codec=0)
    header = Batch(payload=b"records", count=2, last_offset_delta=1, base_timestamp=1, max_timestamp=2)
    assert batch == header.encode()
    for codec in (-1, 5):
        with pytest.raises(ValueError, match="unknown codec"):
            replace_payload(PLAIN, b"", codec=codec)
    with pytest.raises(InvalidRecordError):
        replace_payload(b"", b"", codec=0)
