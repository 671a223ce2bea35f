"""What a check keeps for the replay that follows it."""

from __future__ import annotations

import pytest

from tests.unit.storage.test_segment import segment
from txnkafka.storage import segment_check
from txnkafka.storage.order import NO_LIMIT
from txnkafka.storage.segment import LogSegment
from txnkafka.storage.segment_check import CheckedBatches, check_segment


def check(which: LogSegment, checked: CheckedBatches) -> None:
    assert not check_segment(which, which.base_offset, NO_LIMIT, checked, lambda batches: None).fault


def offsets(which: LogSegment, checked: CheckedBatches) -> list[int]:
    return [offset for batches in checked.of(which) for offset in batches.base_offset]


def test_the_log_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked, found = CheckedBatches(), segment(5)
    check(found, checked)
    check(found, checked)
    monkeypatch.setattr(found, "windows", None)
    assert offsets(found, checked) == [0, 1, 2, 3, 4]


def test_not_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others the log is read again."""
    monkeypatch.setattr(segment_check, "KEPT_BATCHES", 6)
    checked, small, large, last = CheckedBatches(), segment(4), segment(7, base=10), segment(2, base=20)
    for each in (small, large, last):
        check(each, checked)
    for each in (small, last):
        monkeypatch.setattr(each, "windows", None)
    assert offsets(small, checked) == [0, 1, 2, 3]
    assert offsets(large, checked) == [10, 11, 12, 13, 14, 15, 16]
    assert offsets(last, checked) == [20, 21]
