"""What a refused append is told: which partition, what is wrong, and that nothing was appended."""

from __future__ import annotations

import pytest

from tests.unit.storage.client import NOW, data, opened
from txnkafka.errors import CorruptRecordError, InvalidRecordError, RecordListTooLargeError


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
