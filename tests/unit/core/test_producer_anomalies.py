"""Which anomalies a replay of producers reports."""

from __future__ import annotations

import pytest

from tests.models.headers import ABORT, COMMIT, data, encode, marker
from tests.models.producer_state import write_snapshot
from tests.unit.core.producers import NEVER
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.scan import BatchHeader, scan
from txnkafka.model import CompletedTxn, ProducerStateEntry

Told = list[tuple[str, int, str]]


def told(*segments: list[BatchHeader], loaded: ProducerStateEntry | None = None) -> Told:
    """Return name, base offset and text of each anomaly. Reporting them does not change the state."""
    found: Told = []
    table, silent = ProducerTable(), ProducerTable()
    completed, silently = list[CompletedTxn](), list[CompletedTxn]()
    for each in (table, silent):
        each.load(write_snapshot([loaded] if loaded else []), now_ms=0, expiration_ms=NEVER)
    for segment in segments:
        index, anomalies = scan(encode(segment)), list[tuple[str, int, str]]()
        table.replay_checked(index, 0, len(index), completed, anomalies)
        silent.replay(index, 0, silently)
        found += [(name, index[number].base_offset, text) for name, number, text in anomalies]
    assert (table.entries(), completed) == (silent.entries(), silently)
    return found


def test_a_sequence_gap() -> None:
    found = told([data(5, 0, 0, last_offset=2), data(5, 0, 3, sequence=4)])
    assert found == [("sequence_gap", 3, "producer 5: base sequence 4 where 3 is next")]


@pytest.mark.parametrize("sequence", [0, 1, 2, 2**31 - 5])
def test_a_decreasing_sequence(sequence: int) -> None:
    found = told([data(5, 0, 0, last_offset=2), data(5, 0, 3, sequence=sequence)])
    assert found == [("sequence_back", 3, f"producer 5: base sequence {sequence} where 3 is next")]


@pytest.mark.parametrize("hole_in", ["segment", "between segments", "other producer's"])
def test_a_gap_beside_a_hole_in_the_log_is_legal(hole_in: str) -> None:
    first, second = [data(5, 0, 0)], [data(-1, -1, 4), data(5, 0, 5, sequence=3)]
    if hole_in == "segment":
        segments = [first + second]
    elif hole_in == "between segments":
        segments = [first, second]
    else:
        segments = [[*first, data(6, 0, 3), *second]]
    assert told(*segments) == []


def test_a_hole_explains_no_way_back() -> None:
    found = told([data(5, 0, 0, last_offset=2), data(5, 0, 9, sequence=1)])
    assert [code for code, _, _ in found] == ["sequence_back"]


def test_a_hole_elsewhere_explains_nothing() -> None:
    batches = [data(-1, -1, 0), data(-1, -1, 5), data(5, 0, 6), data(5, 0, 7, sequence=9), data(-1, -1, 20)]
    assert [code for code, _, _ in told(batches)] == ["sequence_gap"]


@pytest.mark.parametrize(
    "batches",
    [
        [data(5, 0, 0, sequence=2**31 - 2, last_offset=1), data(5, 0, 2, sequence=0)],
        [data(5, 0, 0, sequence=2**31 - 1), data(5, 0, 1, sequence=0)],
        [data(5, 0, 0, sequence=70)],
        [data(5, 0, 0, sequence=3), data(5, 1, 1, sequence=0)],
        [data(5, 0, 0, sequence=3), marker(5, 0, 1, COMMIT), data(5, 0, 2, sequence=4)],
        [data(5, 0, 0, sequence=3), marker(5, 1, 1, COMMIT), data(5, 1, 2, sequence=0)],
        [marker(5, 1, 1, COMMIT), data(5, 1, 2, sequence=70)],
        [marker(5, 1, 1, COMMIT), marker(5, 1, 2, COMMIT)],
        [data(5, 0, 0, sequence=-1), data(5, 0, 1, sequence=-1), data(5, 0, 2, sequence=4)],
        [data(5, -1, 0, sequence=3), data(5, 0, 1, sequence=7)],
        [data(5, 0, 0), marker(5, 1, 1, -1, count=0)],
        [data(-1, -1, 0, transactional=False), data(-1, -1, 0, transactional=False)],
    ],
)
def test_legal(batches: list[BatchHeader]) -> None:
    assert told(batches) == []


@pytest.mark.parametrize(
    "batches",
    [
        [data(5, 0, 0, sequence=3), data(5, 1, 1, sequence=4)],
        [data(5, 0, 0, sequence=3), marker(5, 1, 1, COMMIT), data(5, 1, 2, sequence=4)],
    ],
)
def test_another_epoch_starts_at_0(batches: list[BatchHeader]) -> None:
    assert [code for code, _, _ in told(batches)] == ["sequence_gap"]


@pytest.mark.parametrize(("last_sequence", "next_sequence"), [(7, 8), (2**31 - 1, 0), (-1, 0)])
def test_sequences_continue_from_a_snapshot(last_sequence: int, next_sequence: int) -> None:
    entry = ProducerStateEntry(5, 0, 0, 1000, -1, last_sequence, 9 if last_sequence >= 0 else -1, 0)
    assert told([data(5, 0, 10, sequence=next_sequence)], loaded=entry) == []
    wrong = next_sequence + 2
    assert [code for code, _, _ in told([data(5, 0, 10, sequence=wrong)], loaded=entry)] == ["sequence_gap"]


def test_epochs_that_go_back() -> None:
    late_marker = marker(5, 1, 3, ABORT, coordinator_epoch=-1)
    batches = [data(5, 3, 0), data(5, 2, 1), marker(5, 1, 2, ABORT), late_marker]
    assert told(batches) == [
        ("producer_epoch_back", 1, "producer 5: producer epoch 2 follows 3"),
        ("marker_epoch_back", 2, "producer 5: producer epoch 1 follows 2"),
        ("coordinator_epoch_back", 3, "producer 5: coordinator epoch -1 follows 0"),
    ]


def test_plain_data_inside_a_transaction() -> None:
    found = told([data(5, 0, 7), data(5, 0, 8, sequence=1, transactional=False)])
    text = "producer 5: plain data while its transaction from offset 7 is open"
    assert found == [("non_transactional_in_transaction", 8, text)]


def test_a_control_batch_of_another_type() -> None:
    found = told([marker(5, 0, 7, 4)])
    assert found == [("unknown_control_type", 7, "producer 5: the control batch is no readable end marker")]


def test_a_part_of_an_index() -> None:
    """Batches outside of the part do not change producers and are not in the log; anomalies have the batch's
    number in the whole index."""
    batches = [data(5, 0, 0), data(5, 0, 1, sequence=7), data(5, 0, 2, sequence=1), data(5, 0, 3, sequence=5)]
    index, table, found = scan(encode(batches)), ProducerTable(), list[tuple[str, int, str]]()
    table.replay_checked(index, 0, 1, [], found)
    table.replay_checked(index, 2, 10, [], found)
    assert [each[:2] for each in found] == [("sequence_gap", 3)]
    assert table.entries()[0].last_sequence == 5
