"""The results of ``validate`` for a batch, below and above the size at which the lock is released."""

from __future__ import annotations

import mmap

import pytest

from tests.models.builder import Batch, PlainRecord
from txnkafka._core.producer_table import CLIENT
from txnkafka._core.validate import FAULTS, BatchRules, IncomingBatch, read_batch
from txnkafka.record.batch_header import BATCH_LENGTH, HEADER_SIZE, LOG_OVERHEAD

RELEASED_FROM = 64 << 10  # LARGE of _core/gil.pxd
SIZES = (1, 1000)  # bytes of each value: a few KB, and more than RELEASED_FROM


def fault(batch: IncomingBatch) -> str:
    """Return what a log without size limits refuses about this batch as a whole."""
    rules = BatchRules(
        max_message_bytes=1 << 40,
        segment_bytes=1 << 40,
        log_append_time=False,
        compact=False,
        compresses=False,
        before_max_ms=1,
        after_max_ms=1,
    )
    return FAULTS[rules.frame_fault(batch, CLIENT)]


def records(value_size: int) -> list[PlainRecord]:
    return [PlainRecord(b"k", b"v" * value_size, 1000 + i) for i in range(100)]


@pytest.mark.parametrize("value_size", SIZES)
def test_what_a_walk_finds(value_size: int) -> None:
    rows = records(value_size)
    rows[40] = rows[40]._replace(key=None, timestamp=7)
    rows[60] = rows[60]._replace(offset_delta=61)
    content = Batch(records=rows).encode()
    assert (len(content) > RELEASED_FROM) == (value_size > 1)
    batch = read_batch(content)
    assert (fault(batch), batch.record_problem, batch.crc_holds) == ("fine", "", True)
    assert (batch.keyless, batch.out_of_order) == (40, 60)
    assert (batch.earliest_timestamp, batch.latest_timestamp) == (7, 1099)


@pytest.mark.parametrize("value_size", SIZES)
@pytest.mark.parametrize("position", [HEADER_SIZE, -1])
def test_a_wrong_crc_is_seen_and_no_record_looked_at(value_size: int, position: int) -> None:
    content = bytearray(Batch(records=records(value_size)).encode())
    content[position] ^= 1
    batch = read_batch(content)
    assert (fault(batch), batch.crc_holds, batch.record_problem) == ("wrong CRC", False, "")
    assert (batch.keyless, batch.latest_timestamp) == (-1, -1)


@pytest.mark.parametrize("value_size", SIZES)
def test_a_record_too_few(value_size: int) -> None:
    content = Batch(records=records(value_size), count=101).encode()
    batch = read_batch(content)
    assert (batch.bad_record, batch.record_problem) == (100, "the batch ends before it")


@pytest.mark.parametrize("value_size", SIZES)
def test_decompressed_records_are_walked_over_as_plain_ones(value_size: int) -> None:
    plain = Batch(records=records(value_size)).encode()
    batch = read_batch(Batch(records=records(value_size), codec=1).encode())
    assert (batch.crc_holds, batch.latest_timestamp) == (True, -1)
    batch.walk_decompressed(plain[HEADER_SIZE:])
    assert (batch.record_problem, batch.latest_timestamp) == ("", 1099)


def test_a_batch_of_two_gigabytes_is_refused_by_its_size() -> None:
    largest = 2**31 - 1
    with mmap.mmap(-1, largest + LOG_OVERHEAD, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[:HEADER_SIZE] = Batch(records=records(1)).encode()[:HEADER_SIZE]
        memory[BATCH_LENGTH:LOG_OVERHEAD] = largest.to_bytes(4, "big")
        assert fault(read_batch(memory)) == "larger than any"
