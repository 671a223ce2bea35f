"""Transactions on headers, and the selection of visible batches, compared with the consumer's own rules."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.fetch_filter import AbortedTxn, aborted_in, fetch, scan_log
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.read_committed import HiddenRanges, TransactionScan, contained, merged, select
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.logdir import HiddenRange


class Step(NamedTuple):
    """What a producer writes: data (with or without a transaction) or an end marker."""

    producer_id: int
    kind: str
    records: int


STEPS = st.builds(
    Step,
    st.integers(0, 3),
    st.sampled_from(["data", "data", "data", "commit", "abort", "plain", "empty"]),
    st.integers(1, 3),
)


def write(steps: list[Step]) -> bytes:
    """Encode the log of these steps, as transaction.version 0 would write it."""
    log, offset = b"", 0
    for producer_id, kind, records in steps:
        common = {"base_offset": offset, "producer_id": producer_id, "producer_epoch": 0}
        if kind in ("commit", "abort"):
            log += end_marker(int(kind == "commit"), **common)
            offset += 1
            continue
        content = [PlainRecord(b"k", b"v", offset)] * (0 if kind == "empty" else records)
        batch = Batch(records=content, transactional=kind != "plain", last_offset_delta=records - 1, **common)
        log += batch.encode()
        offset += records
    return log


def visible(index: BatchIndex, selection: bytearray) -> list[int]:
    return [offset for i, offset in enumerate(index.base_offset) if selection[i] and index.record_count[i]]


@given(st.lists(STEPS, max_size=25))
def test_committed_data_is_what_the_consumer_returns(steps: list[Step]) -> None:
    log = write(steps)
    index = scan(log)
    transactions = TransactionScan()
    transactions.feed(index)
    open_transactions = transactions.open_transactions()
    stable = min([each.first_offset for each in open_transactions], default=1 << 62)
    hidden = [
        HiddenRange(each.producer_id, each.first_offset, each.last_offset)
        for each in transactions.ended
        if each.outcome == "aborted"
    ]
    selection = select(index, hidden, end_offset=stable)
    headers = scan_log(log)[0]
    end = min(stable, headers[-1].last_offset + 1 if headers else 0)
    expected = {record.offset for record in fetch(log, headers, 0, end, aborted_in(headers))}
    bases = {header.base_offset for header in headers}
    assert set(visible(index, selection)) == expected & bases


@given(st.lists(STEPS.filter(lambda step: step.kind != "empty"), max_size=25))
def test_transactions_are_those_of_the_model(steps: list[Step]) -> None:
    log = write(steps)
    transactions = TransactionScan()
    transactions.feed(scan(log))
    aborted = [
        (each.producer_id, each.first_offset, each.last_offset)
        for each in transactions.ended
        if each.outcome == "aborted"
    ]
    assert aborted == [each[:3] for each in aborted_in(scan_log(log)[0])]


@given(st.lists(STEPS, max_size=25), st.integers(0, 25))
def test_feeding_in_two_parts_changes_nothing(steps: list[Step], cut: int) -> None:
    index = scan(write(steps))
    whole, parts = TransactionScan(), TransactionScan()
    whole.feed(index)
    middle = min(cut, len(index))
    parts.feed(index, 0, middle)
    parts.feed(index, middle)
    assert whole.ended == parts.ended
    assert whole.open_transactions() == parts.open_transactions()
    assert whole.next_offset == parts.next_offset


def test_a_transaction_counts_its_batches_records_and_bytes() -> None:
    log = write([Step(1, "data", 2), Step(2, "plain", 1), Step(1, "data", 3), Step(1, "commit", 0)])
    transactions = TransactionScan()
    transactions.feed(scan(log))
    (each,) = transactions.ended
    assert (each.producer_id, each.first_offset, each.last_offset, each.outcome) == (1, 0, 6, "committed")
    assert (each.batches, each.records, each.first_timestamp, each.last_timestamp) == (2, 5, 0, 3)
    assert each.bytes == sum(h.size for h in scan(log) if h.producer_id == 1 and not h.attributes & 0x20)


def test_a_repeated_batch_is_passed_over() -> None:
    log = write([Step(1, "data", 1), Step(1, "commit", 0)])
    again = log[: len(log) - 78] + log
    transactions = TransactionScan()
    transactions.feed(scan(again))
    assert [each.records for each in transactions.ended] == [1]
    assert transactions.open_transactions() == []
    assert list(select(scan(again))) == [1, 0, 0]


def emptied(base_offset: int) -> bytes:
    """Encode what the cleaner leaves of a batch of three records: its offsets and sequences, without
    records."""
    return Batch(
        records=[], base_offset=base_offset, last_offset_delta=2, base_sequence=base_offset,
        transactional=True, producer_id=1, producer_epoch=0,
    ).encode()  # fmt: skip


def test_a_batch_that_the_cleaner_emptied_opens_no_transaction() -> None:
    """The marker of an emptied batch may be removed, too. After data the batch belongs to the open
    transaction."""
    transactions = TransactionScan()
    transactions.feed(scan(emptied(0)))
    assert (transactions.open_transactions(), transactions.next_offset) == ([], 3)
    data = Batch(
        records=[PlainRecord(b"", b"")], base_offset=3, transactional=True, producer_id=1, producer_epoch=0
    )
    transactions.feed(scan(data.encode() + emptied(4)))
    (found,) = transactions.open_transactions()
    assert (found.first_offset, found.last_offset, found.batches, found.records) == (3, 6, 2, 1)


def test_a_batch_that_the_cleaner_emptied_keeps_its_sequences() -> None:
    table = ProducerTable()
    table.replay(scan(emptied(0)), 0, [])
    (entry,) = table.entries()
    assert (entry.last_sequence, entry.last_offset, entry.offset_delta) == (2, 2, 2)


def test_over_a_hole_no_marker_decides() -> None:
    data = Batch(records=[PlainRecord(b"", b"")], transactional=True, producer_id=1, producer_epoch=5)
    for epoch in (5, 6, 8):
        transactions = TransactionScan()
        transactions.feed(scan(data.encode()))
        transactions.hole()
        transactions.feed(scan(end_marker(1, base_offset=9, producer_id=1, producer_epoch=epoch)))
        assert [each.outcome for each in transactions.ended] == ["undecided"]


@pytest.mark.parametrize("epoch", [5, 6])
def test_behind_a_hole_data_begins_a_transaction(epoch: int) -> None:
    batch = Batch(records=[PlainRecord(b"", b"")], transactional=True, producer_id=1, producer_epoch=5)
    transactions = TransactionScan()
    transactions.feed(scan(batch.encode()))
    transactions.hole()
    batch.base_offset, batch.producer_epoch = 9, epoch
    transactions.feed(scan(batch.encode() + end_marker(0, base_offset=10, producer_id=1, producer_epoch=7)))
    assert [(each.first_offset, each.outcome) for each in transactions.ended] == [
        (0, "undecided"),
        (9, "aborted"),
    ]
    assert transactions.open_transactions() == []


def test_a_scan_that_is_continued_remembers_a_hole() -> None:
    batch = Batch(records=[PlainRecord(b"", b"")], transactional=True, producer_id=1, producer_epoch=5)
    first = TransactionScan()
    first.feed(scan(batch.encode()))
    first.hole()
    batch.base_offset, batch.producer_id = 1, 2
    first.feed(scan(batch.encode()))
    transactions = TransactionScan(first.next_offset, first.open_ranges())
    markers = [end_marker(1, base_offset=8 + each, producer_id=each, producer_epoch=6) for each in (1, 2)]
    transactions.feed(scan(b"".join(markers)))
    assert [(each.producer_id, each.outcome) for each in transactions.ended] == [
        (1, "undecided"),
        (2, "committed"),
    ]


def test_selection_of_offsets() -> None:
    index = scan(
        b"".join(Batch(records=[PlainRecord(b"", b"")] * 4, base_offset=4 * i).encode() for i in range(4))
    )
    assert list(select(index)) == [1, 1, 1, 1]
    assert list(select(index, start_offset=5, end_offset=11)) == [0, 2, 2, 0]
    assert list(select(index, start_offset=4, end_offset=12)) == [0, 1, 1, 0]
    assert list(select(index, start=1, stop=2)) == [0, 1, 0, 0]
    assert list(select(index, start_offset=99)) == [0, 0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 6)), max_size=8))
def test_merged_ranges_cover_the_same_offsets(ranges: list[tuple[int, int, int]]) -> None:
    hidden = [HiddenRange(producer, first, first + length) for producer, first, length in ranges]
    covered = {(p, offset) for p, first, length in ranges for offset in range(first, first + length + 1)}
    result = merged(hidden)
    assert {(p, offset) for p, first, last in result for offset in range(first, last + 1)} == covered
    assert result == sorted(result)
    for (p, _, last), (q, first, _) in pairwise(result):
        assert p != q or last < first


def test_the_model_and_the_core_agree_on_what_an_entry_is() -> None:
    assert AbortedTxn._fields[:3] == HiddenRange._fields


@given(st.lists(STEPS, max_size=25))
def test_contained_is_the_transactional_data_of_the_ranges(steps: list[Step]) -> None:
    index = scan(write(steps))
    transactions = TransactionScan()
    transactions.feed(index)
    for outcome in ("committed", "aborted"):
        ranges = [
            HiddenRange(each.producer_id, each.first_offset, each.last_offset)
            for each in transactions.ended
            if each.outcome == outcome
        ]
        expected = [
            header.attributes & 0x30 == 0x10
            and any(
                each.producer_id == header.producer_id
                and each.first_offset <= header.base_offset <= each.last_offset
                for each in ranges
            )
            for header in index
        ]
        assert list(map(bool, contained(index, HiddenRanges(ranges)))) == expected


@given(st.lists(STEPS, max_size=25))
def test_an_ended_transaction_knows_its_marker(steps: list[Step]) -> None:
    index = scan(write(steps))
    transactions = TransactionScan()
    transactions.feed(index)
    headers = {header.base_offset: header for header in index}
    ends = {header.last_offset: header for header in index}
    for each in transactions.ended:
        marker, last = headers[each.last_offset], ends[each.last_data_offset]
        assert marker.attributes & 0x20
        assert not last.attributes & 0x20
        assert (marker.max_timestamp, marker.coordinator_epoch) == (
            each.marker_timestamp,
            each.coordinator_epoch,
        )
        assert last.producer_id == marker.producer_id == each.producer_id
    for each in transactions.open_transactions():
        assert (each.last_data_offset, each.marker_timestamp, each.coordinator_epoch) == (
            each.last_offset,
            -1,
            -1,
        )
