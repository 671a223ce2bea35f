"""Records get the producer id of the batch that contains them; end markers become events."""

from __future__ import annotations

from collections.abc import Iterator

from txnkafka.coordinator import LogEvent, log_events
from txnkafka.model import TimestampType
from txnkafka.record.batch import Record

PLAIN, TRANSACTIONAL, MARKER = 0, 0x10, 0x30
ABORT, COMMIT, LEADER_CHANGE = 0, 1, 2


def records(*offsets: int) -> Iterator[Record]:
    return (Record(offset, 0, TimestampType.CREATE_TIME, b"k", b"v", [], None) for offset in offsets)


def events(
    *headers: tuple[int, int, int, int], offsets: tuple[int, ...]
) -> list[tuple[int, int, bool | None]]:
    """Offset, producer id and end of each event."""
    return [event[:3] for event in log_events(iter(headers), records(*offsets))]


def test_a_record_belongs_to_the_producer_of_its_batch() -> None:
    headers = [(2, 7, TRANSACTIONAL, -1), (3, 8, PLAIN, -1), (4, 7, MARKER, COMMIT)]
    headers.append((5, 8, TRANSACTIONAL, -1))
    assert events(*headers, offsets=(0, 2, 3, 5)) == [
        (0, 7, None),
        (2, 7, None),
        (3, -1, None),  # idempotent is not transactional
        (4, 7, True),
        (5, 8, None),
    ]


def test_markers_and_other_control_batches() -> None:
    headers = [(0, 7, MARKER, ABORT), (1, -1, 0x20, LEADER_CHANGE), (2, 7, MARKER, COMMIT)]
    assert events(*headers, offsets=()) == [(0, 7, False), (2, 7, True)]


def test_a_batch_that_could_not_be_decoded_has_no_events() -> None:
    headers = [(1, 7, TRANSACTIONAL, -1), (2, 8, TRANSACTIONAL, -1)]
    assert events(*headers, offsets=(2,)) == [(2, 8, None)]


def test_size_counts_key_and_value() -> None:
    assert LogEvent(0, -1, None, b"abc", b"de").size - LogEvent(0, -1, None, None, None).size == 5
