"""A read request is validated once, and means the same as keywords and as a value."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from tests.models.builder import legacy_entry, legacy_wrapper
from tests.unit.logdir.logs import batch, marker, partition
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir import LogDir, PartitionView, ReadRequest
from txnkafka.logdir.requested import count_requested, located, offsets_of, read_requested, units_of
from txnkafka.model import IsolationLevel
from txnkafka.record.chunk import ChunkDecoder

MAX_TIMESTAMP = 35  # where the largest timestamp begins in a batch
TIME_OF_4 = 1004
ABORTED = batch(3, 2, transactional=True, producer_id=1, producer_epoch=0)
SEGMENTS = {0: [batch(0, 3), ABORTED, marker(5, "abort", 1), batch(6, 2)]}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"isolation_level": "serializable"}, ValueError, "isolation level must be"),
        ({"up_to": "end"}, ValueError, "up_to must be log-end or high-watermark, not 'end'"),
        ({"on_corrupt": "ignore"}, ValueError, "on_corrupt must be stop or skip, not 'ignore'"),
        ({"start_offset": 1.5}, TypeError, "start_offset must be an int, not 1.5"),
        ({"end_time": "now"}, TypeError, "end_time must be an int, not 'now'; it is milliseconds since 1970"),
        ({"end_offset": -1}, ValueError, "end_offset must be at least 0, not -1: only a start counts from"),
        ({"start_offset": 1, "start_time": 1}, ValueError, "start_offset and start_time exclude each other"),
        ({"start_time": 1_795_425_041}, ValueError, "start_time is in milliseconds .* looks like seconds"),
        ({"end_time": 10**9}, ValueError, "end_time is in milliseconds .* looks like seconds"),
        ({"end_offset": 0, "end_time": 0}, ValueError, "end_offset and end_time exclude each other"),
    ],
)
def test_a_wrong_request_is_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ReadRequest(**given)


def test_a_negative_end_is_refused_by_all_that_read(tmp_path: Path) -> None:
    """Nothing was read, without a word."""
    view: Any = partition(tmp_path, SEGMENTS)
    for name in ("records", "read", "plan", "count", "to_arrow", "transactions"):
        with pytest.raises(ValueError, match="end_offset must be at least 0, not -1"):
            getattr(view, name)(end_offset=-1)
    assert [record.offset for record in view.records(start_offset=-1)] == [7]
    assert list(view.records(end_offset=0)) == []


def test_a_request_is_a_value() -> None:
    request = ReadRequest(isolation_level=IsolationLevel.of("read_uncommitted"), end_offset=7)
    assert pickle.loads(pickle.dumps(request)) == request
    assert request == ReadRequest.of("READ_UNCOMMITTED", None, 7)
    with pytest.raises(FrozenInstanceError):
        request.end_offset = 8  # type: ignore[misc]


def test_keywords_and_a_request_read_the_same(tmp_path: Path) -> None:
    view = partition(tmp_path, SEGMENTS)
    for level in IsolationLevel:
        for start, end in ((None, None), (1, 7), (4, 5), (8, 8)):
            request = ReadRequest(isolation_level=level, start_offset=start, end_offset=end)
            given: dict[str, Any] = {"isolation_level": level, "start_offset": start, "end_offset": end}
            assert units_of(view, request) == view.plan(**given)
            assert offsets_of(view, request) == (start or 0, 8 if end is None else end)
            assert count_requested(view, request) == view.count(**given)
            read = offsets(view, request)
            assert read == [record.offset for record in view.records(**given)]
            assert view.count(**given) == len(read)


def test_times_become_offsets(tmp_path: Path) -> None:
    view = partition(tmp_path, SEGMENTS)
    first = {record.offset: record.timestamp for record in view.records()}
    request = ReadRequest(start_time=first[1], end_time=first[7])
    assert located(view, request) == ReadRequest(start_offset=1, end_offset=7)
    assert units_of(view, request) == view.plan(start_offset=1, end_offset=7)
    late = ReadRequest(start_time=1 << 50)
    assert (located(view, late), units_of(view, late)) == (None, [])
    assert located(view, ReadRequest(end_time=1 << 50)) == ReadRequest()


def damaged_log(root: Path) -> PartitionView:
    """Offsets 0 to 7; a bit is flipped in the largest timestamp of the batch with 2 and 3, which seems to be
    later than all others."""
    damaged = bytearray(batch(2))
    damaged[MAX_TIMESTAMP] ^= 1
    return partition(root, {0: [batch(0), bytes(damaged), batch(4)], 6: [batch(6)]})


def offsets(view: PartitionView, request: ReadRequest) -> list[int]:
    return [offset for columns in read_requested(view, request, ChunkDecoder) for offset in columns.offsets]


def test_damage_in_the_search_for_a_start(tmp_path: Path) -> None:
    view = damaged_log(tmp_path)
    request = ReadRequest(start_time=TIME_OF_4)
    with pytest.raises(CorruptRecordError):
        located(view, request)
    met: list[CorruptRecordError] = []
    skipping = replace(request, on_corrupt=met.append)
    assert located(view, skipping) == ReadRequest(start_offset=2, on_corrupt=met.append)
    assert offsets(view, skipping) == [4, 5, 6, 7]
    assert [error.offset for error in met] == [2]  # once, by the reading


def test_a_search_stops_where_the_log_before_a_damaged_wrapper_ends(tmp_path: Path) -> None:
    """It begins there, and no earlier, where damage is left out."""
    wrapper = legacy_wrapper([legacy_entry(i, b"k", b"v") for i in range(3)], 6, codec=1, timestamp=1004)
    view = partition(tmp_path, {0: [batch(0), batch(2), wrapper[:-1] + b"\1"], 7: [batch(7)]})
    with pytest.raises(CorruptRecordError) as caught:
        view.offset_for_timestamp(TIME_OF_4)
    assert caught.value.offset == 4


BASE_OFFSET, LENGTH = 3, 8


@pytest.mark.parametrize("place", [BASE_OFFSET, LENGTH])
def test_a_search_for_a_start_does_not_pass_over_damaged_headers(tmp_path: Path, place: int) -> None:
    """Offsets 0 to 7 with the times 1000 to 1007; the batch with 2 and 3 has a damaged header, and behind a
    damaged length nothing of its segment can be read."""
    damaged = bytearray(batch(2))
    damaged[place] ^= 0x40
    view = partition(tmp_path, {0: [batch(0), bytes(damaged), batch(4)], 6: [batch(6)]})
    for time in range(1002, 1008):
        if place == BASE_OFFSET and time > 1003:  # its CRC is right: it has no such record
            assert view.offset_for_timestamp(time) == (time - 1000, time, None)
            continue
        with pytest.raises(CorruptRecordError, match="damaged") as caught:
            offsets(view, ReadRequest(start_time=time))
        assert caught.value.offset == 2
        assert caught.value.file.endswith("/00000000000000000000.log")
        met: list[CorruptRecordError] = []
        readable = [4, 5, 6, 7] if place == BASE_OFFSET else [6, 7]
        assert offsets(view, ReadRequest(start_time=time, on_corrupt=met.append)) == readable
        assert [error.offset for error in met] == [2]  # once, by the reading
    assert offsets(view, ReadRequest(start_time=1001, end_time=1002, on_corrupt="skip")) == [1]
    found = view.offset_for_timestamp(1002, on_corrupt="skip")
    assert found is not None
    assert found.offset == readable[0]


def test_damage_outside_of_what_is_searched_is_passed_over(tmp_path: Path) -> None:
    damaged = bytearray(batch(2))
    damaged[LENGTH] ^= 0x40
    segments = {0: [batch(0), bytes(damaged)], 4: [batch(4)], 6: [batch(6)]}
    view = partition(tmp_path, segments)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    trimmed = LogDir(str(tmp_path)).partition("t", 0)
    with pytest.raises(CorruptRecordError):
        view.offset_for_timestamp(1005)
    assert trimmed.offset_for_timestamp(1005) == (5, 1005, None)


def test_damage_in_the_search_for_an_end(tmp_path: Path) -> None:
    view = damaged_log(tmp_path)
    met: list[CorruptRecordError] = []
    assert offsets(view, ReadRequest(end_time=TIME_OF_4 + 2, on_corrupt=met.append)) == [0, 1, 4, 5]
    assert [error.offset for error in met] == [2]
    late = ReadRequest(end_time=TIME_OF_4 + 9, on_corrupt="skip")
    assert offsets(view, late) == [0, 1, 4, 5, 6, 7]


def test_all_before_damage_is_read_up_to_an_end_time(tmp_path: Path) -> None:
    view = damaged_log(tmp_path)
    found = view.records(end_time=TIME_OF_4)
    assert [next(found).offset, next(found).offset] == [0, 1]
    with pytest.raises(CorruptRecordError):
        next(found)
    assert offsets(view, ReadRequest(start_offset=4, end_time=TIME_OF_4 + 1)) == [4]  # the damage is before
