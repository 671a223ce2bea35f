"""The header pass: the fields of whole batches, and where it stops."""

from __future__ import annotations

import threading

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tests.models.builder import Batch, PlainRecord, end_marker, legacy_entry, legacy_wrapper
from tests.models.fetch_filter import scan_log
from txnkafka._core.decode import corrupt_batch
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.record.batch_header import ATTRIBUTE_DELETE_HORIZON, ATTRIBUTE_LOG_APPEND_TIME

RECORDS = [PlainRecord(b"k", b"v", 1000), PlainRecord(None, b"", 998)]


def two_batches() -> bytes:
    first = Batch(records=RECORDS, base_offset=5, partition_leader_epoch=3).encode()
    second = Batch(
        records=RECORDS, base_offset=7, transactional=True, producer_id=9, producer_epoch=2, base_sequence=4
    ).encode()
    return first + second


def test_every_field_of_a_header() -> None:
    data = two_batches()
    index = scan(data, position=100)
    assert [tuple(each) for each in index] == [
        tuple(each._replace(position=each.position + 100)) for each in scan_log(data)[0]
    ]
    assert (index.stop, index.end_position, index.stop_reason) == ("end", 100 + len(data), "")
    for name in index[0]._fields:
        column = getattr(index, "record_count" if name == "count" else name)
        assert list(column) == [getattr(header, name) for header in index]


def test_columns_are_strided_buffers_that_hold_the_index_still() -> None:
    index = scan(two_batches())
    column = index.base_offset
    assert column.tolist() == [5, 7]
    assert column.strides[0] > column.itemsize
    with pytest.raises(BufferError, match="still looked at"):
        scan(two_batches(), index=index)
    with pytest.raises(BufferError, match="still looked at"):
        index.truncate(0, "end", "")
    column.release()
    scan(two_batches(), position=index.end_position, index=index)
    assert list(index.position) == [0, 79, 158, 237] or len(index) == 4


def test_a_marker_says_its_type_and_coordinator_epoch() -> None:
    marker = end_marker(1, coordinator_epoch=42, base_offset=3, producer_id=7, producer_epoch=1)
    header = scan(marker)[0]
    assert (header.control_type, header.coordinator_epoch, header.count) == (1, 42, 1)


@pytest.mark.parametrize(
    ("tail", "stop", "reason"),
    [
        (b"\0" * 300, "zeros", "300 zero bytes to the end"),
        (b"\0" * 5, "zeros", "5 zero bytes to the end"),
        (b"\0\0\1", "torn", "the last 3 bytes are the beginning of a batch header"),
        (Batch(records=RECORDS).encode()[:-1], "torn", "only 76 bytes follow"),
        (
            b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 4 + b"\2" + b"\0" * 50,
            "torn",
            "a batch of 2147483659 bytes",
        ),
        (b"\1" + b"\0" * 60, "garbage", "no batch begins here: length 0"),
        (b"\0" * 8 + b"\xff\xff\xff\xff" + b"\0" * 60, "garbage", "length -1"),
        (b"\0" * 11 + b"\x20" + b"\0" * 4 + b"\2" + b"\0" * 60, "garbage", "length 32, magic 2"),
        (b"\0" * 11 + b"\x31" + b"\0" * 4 + b"\3" + b"\0" * 60, "garbage", "magic 3"),
    ],
)
def test_where_it_stops(tail: bytes, stop: str, reason: str) -> None:
    data = two_batches()
    index = scan(data + tail)
    assert (len(index), index.end_position, index.stop) == (2, len(data), stop)
    assert reason in index.stop_reason


def test_a_flipped_magic_keeps_the_batch_in_its_place() -> None:
    data = bytearray(two_batches())
    data[16] = 9
    index = scan(data)
    assert list(index.magic) == [127, 2]
    assert list(index.base_offset) == [5, 7]


@pytest.mark.parametrize("attribute", [0, ATTRIBUTE_LOG_APPEND_TIME, ATTRIBUTE_DELETE_HORIZON])
def test_a_marker_whose_magic_is_that_of_an_old_format_stays_a_marker(attribute: int) -> None:
    """A topic with LogAppendTime sets an attribute in each marker, the cleaner another. Taken for a message,
    the marker would leave its transaction to the next one."""
    content = bytearray(end_marker(0, base_offset=2, producer_id=1, producer_epoch=0))
    content[22] |= attribute
    content[17:21] = crc32c(bytes(content[21:])).to_bytes(4)
    content[16] = 0
    index = scan(content)
    assert (list(index.magic), list(index.control_type), list(index.producer_id)) == ([127], [0], [1])


def test_legacy_entries_and_wrappers() -> None:
    entries = legacy_entry(offset=3, magic=0, key=b"k", value=b"v") + legacy_entry(
        offset=4, magic=1, key=None, value=b"v", timestamp=77
    )
    wrapper = legacy_wrapper(
        [legacy_entry(offset=i, magic=1, key=b"k", value=b"v", timestamp=5) for i in (0, 1)],
        offset=6,
        magic=1,
        codec=1,
        timestamp=5,
    )
    index = scan(entries + wrapper)
    assert list(index.magic) == [0, 1, 1]
    assert list(index.last_offset) == [3, 4, 6]
    assert list(index.record_count) == [1, 1, -1]
    assert list(index.max_timestamp) == [-1, 77, 5]


@given(st.binary(max_size=300))
def test_any_bytes_as_the_model_sees_them(data: bytes) -> None:
    index = scan(data)
    headers, stop, end = scan_log(data)
    assert ([tuple(each) for each in index], index.stop, index.end_position) == (
        [tuple(h) for h in headers],
        stop,
        end,
    )


@given(st.integers(0, 8 * 158 - 1), st.integers(0, 158))
def test_damaged_batches_as_the_model_sees_them(bit: int, length: int) -> None:
    data = bytearray(two_batches())
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    for bytes_ in (bytes(data), bytes(data[:length])):
        index = scan(bytes_)
        headers, stop, end = scan_log(bytes_)
        assert ([tuple(each) for each in index], index.stop, index.end_position) == (
            [tuple(h) for h in headers],
            stop,
            end,
        )


def test_latest_timestamp_of_headers() -> None:
    def at(timestamp: int) -> bytes:
        return Batch(records=[PlainRecord(b"k", b"v", timestamp)]).encode()

    index = scan(at(5) + at(9) + at(-1) + legacy_entry(3, b"k", b"v", magic=1, timestamp=7) + at(3))
    assert [index.latest_timestamp(0, stop) for stop in (1, 2, 3)] == [5, 9, 9]
    assert index.latest_timestamp(2, 3) == -1
    assert index.latest_timestamp(2, 2) == -(1 << 63)
    assert index.latest_timestamp(0, 5) == index.latest_timestamp(3, 4) == (1 << 63) - 1
    with pytest.raises(IndexError, match="batches 2 to 6 of 5"):
        index.latest_timestamp(2, 6)


def test_gaps_lie_between_batches_inside_them_or_where_a_wrapper_does_not_tell() -> None:
    whole = [Batch(records=RECORDS, base_offset=offset).encode() for offset in (0, 2)]
    index = scan(b"".join(whole))
    assert not index.has_gaps(0)
    assert index.has_gaps(-1)
    assert not scan(b"").has_gaps(7)
    assert scan(whole[0] + Batch(records=RECORDS, base_offset=3).encode()).has_gaps(0)
    assert scan(Batch(records=RECORDS, base_offset=0, last_offset_delta=2).encode() + whole[1]).has_gaps(0)
    entry = legacy_entry(offset=0, magic=1, key=None, value=b"v", timestamp=5)
    assert not scan(entry).has_gaps(0)
    assert scan(legacy_wrapper([entry], offset=0, magic=1, codec=1, timestamp=5)).has_gaps(0)


def test_find_truncate_extend_and_disorder() -> None:
    data = b"".join(Batch(records=RECORDS, base_offset=offset).encode() for offset in (0, 2, 10, 4))
    index = scan(data)
    assert [index.find(offset) for offset in (0, 1, 2, 9, 10, 11)] == [0, 0, 1, 2, 2, 2]
    assert index.find(1 << 63) == len(index), "files name such offsets: base offset plus relative offset"
    assert index.disorder(0) == 3
    assert index.disorder(1) == 0
    assert index.disorder(12, 3) == 3
    index.truncate(3, "crc", "because")
    assert (len(index), index.end_position, index.stop, index.stop_reason) == (
        3,
        3 * len(data) // 4,
        "crc",
        "because",
    )
    assert index.disorder(0) == 3
    whole = BatchIndex()
    whole.extend(index)
    whole.extend(scan(data[index.end_position :], position=index.end_position))
    assert [tuple(each) for each in whole] == [tuple(each) for each in scan(data)]
    with pytest.raises(IndexError):
        index[3]
    with pytest.raises(IndexError, match="cannot keep 9 of 3 batches"):
        index.truncate(9, "end", "")
    assert index[-1].base_offset == 10


def test_no_way_leads_to_entries_that_were_moved() -> None:
    """``memoryview.obj`` still exists after the memoryview was released; it shows the current index."""
    data = two_batches()
    index = scan(data)
    view = index.position
    column = view.obj
    view.release()
    scan(data * 100, index=index)
    assert memoryview(column).tolist() == index.position.tolist()
    assert len(memoryview(column)) == 202


def test_an_index_stays_while_somebody_reads_it() -> None:
    data = two_batches()
    index = scan(data)
    held = index.magic
    for change in (
        lambda: scan(data, index=index),
        lambda: index.extend(scan(data)),
        lambda: index.truncate(1, "end", ""),
    ):
        with pytest.raises(BufferError, match="still looked at"):
            change()
    assert len(held) == len(index) == 2
    assert (index.find(7), index.disorder(0), index.has_gaps(5)) == (1, 2, False)
    held.release()
    index.extend(scan(data))
    assert len(index) == 4


def test_an_index_is_not_read_while_batches_are_added() -> None:
    data = two_batches() * 200_000
    index = BatchIndex()
    thread = threading.Thread(target=scan, args=(data,), kwargs={"index": index})
    thread.start()
    refused = 0
    while thread.is_alive():
        for look in (lambda: index[0], lambda: index.position, lambda: index.find(5)):
            try:
                look()
            except BufferError as error:
                refused += "added to this index by another thread" in str(error)
            except IndexError:  # not begun
                pass
    thread.join()
    assert refused > 0
    assert len(index) == 400_000
    assert index[0].base_offset == 5


@pytest.mark.parametrize("number", [-1, 2, 1 << 40])
def test_no_error_of_a_batch_that_is_not_there(number: int) -> None:
    with pytest.raises(IndexError, match="of 2"):
        corrupt_batch(scan(two_batches()), number)
