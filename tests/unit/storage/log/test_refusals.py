"""The errors of refused appends name the partition and the fault; nothing is appended."""

from __future__ import annotations

import pytest

from tests.unit.storage.client import NOW, PARTITION, Log, data, marker, opened
from tests.unit.storage.log.test_append import put, sealed
from txnkafka._core import producer_rules
from txnkafka._core.producer_table import CLIENT, ProducerTable
from txnkafka._core.validate import read_batch
from txnkafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    ProduceError,
    RecordListTooLargeError,
)
from txnkafka.record.builder import build_batch
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.producer_errors import refusal
from txnkafka.testing.memory_files import MemoryFiles

LAST = 2**63 - 2  # the last valid offset


def test_a_damaged_batch() -> None:
    log = opened()
    damaged = data()
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError) as refused:
        log.append(damaged, now_ms=NOW)
    assert str(refused.value).endswith(f"({log.topic_partition}). Nothing of it was appended")
    assert log.log_end_offset == 0


def test_bytes_behind_a_batch() -> None:
    log = opened()
    with pytest.raises(InvalidRecordError, match=f"{log.topic_partition}: 1 bytes follow the batch"):
        log.append(data() + b"\0", now_ms=NOW)
    assert log.log_end_offset == 0


def test_a_batch_that_is_larger_than_a_segment() -> None:
    log = opened(segment_bytes=100)
    with pytest.raises(RecordListTooLargeError, match=f"{log.topic_partition}: the batch has"):
        log.append(data(count=9), now_ms=NOW)
    assert log.log_end_offset == 0


def test_a_marker_that_cannot_be_read() -> None:
    log, unreadable = Log(), bytearray(marker(1))
    unreadable[-1 - len(unreadable) + marker(1).index(b"\0\0\0\1", 61) + 4] = 7  # COMMIT, in the key
    with pytest.raises(InvalidRecordError, match=f"{PARTITION}: producer 1: the control batch") as refused:
        log.append(sealed(unreadable), origin=AppendOrigin.COORDINATOR, transaction_version=0)
    assert refused.value.code == 87
    assert log.log.log_end_offset == 0


@pytest.mark.parametrize("code", sorted(set(producer_rules.CODES) - {0, 46}))
def test_every_code_of_the_producer_rules_has_its_error(code: int) -> None:
    class Refused:
        text = "why"

    Refused.code = code  # type: ignore[attr-defined]
    error = refusal(Refused, PARTITION)  # type: ignore[arg-type]
    assert (error.code, type(error) is ProduceError) == (code, code == -1)
    assert "on_corrupt" not in str(error)
    assert str(PARTITION) in str(error)


def test_bytes_that_are_no_batch_are_refused_without_advice_for_readers() -> None:
    checked = ProducerTable().check(read_batch(b"nothing"), CLIENT)
    error = refusal(checked, PARTITION)
    assert isinstance(error, CorruptRecordError)
    assert str(error) == "there is no whole batch here (t-0). Nothing of it was appended"


@pytest.mark.parametrize("origin", list(AppendOrigin))
def test_a_last_offset_before_the_first(origin: AppendOrigin) -> None:
    log = Log()
    batch = sealed(bytearray(build_batch([(b"key", b"value", NOW)])))
    put(23, 4, -(2**31))(batch)
    with pytest.raises(InvalidRecordError, match="lies 2147483648 before the first"):
        log.append(sealed(batch), origin=origin)
    assert log.log.log_end_offset == 0


@pytest.mark.parametrize("origin", list(AppendOrigin))
def test_no_offsets_are_left(origin: AppendOrigin) -> None:
    """The last offset can be assigned; any batch after it is refused, and the log can be closed."""
    files = MemoryFiles()
    opened(files).local.close_files()
    files.remove("/data/t-0/00000000000000000000.log")
    file = files.create(f"/data/t-0/{LAST - 2:020}.log")
    file.write(0, [build_batch([(b"key", b"value", NOW)], base_offset=LAST - 2)])
    log = Log(opened(files))
    assert log.log.log_end_offset == LAST - 1
    with pytest.raises(InvalidRecordError, match="no offsets left"):
        log.append(data(count=3), origin=origin)
    log.append(data(count=2), origin=origin)
    with pytest.raises(InvalidRecordError, match="no offsets left"):
        log.append(data(count=1), origin=origin)
    assert log.log.log_end_offset == LAST + 1
    log.restart()
    assert (log.log.log_end_offset, log.log.high_watermark) == (LAST + 1, LAST + 1)
