"""Strips against a model that knows the state of every single offset."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.directories import INTACT, Directory
from tests.unit.logdir.logs import batch, marker, partition
from txnkafka.logdir import PartitionView
from txnkafka.logdir.strip import Cell, State, Strip, strip_of
from txnkafka.storage.formats import segment_reader

S = State
PRODUCERS = 3


class Event(NamedTuple):
    """What is appended: records of a producer (-1: in no transaction), its end marker, or a gap that the
    cleaner left."""

    kind: str
    producer_id: int
    count: int


events = st.lists(
    st.builds(
        Event,
        st.sampled_from(["data", "data", "plain", "commit", "abort", "gap"]),
        st.integers(0, PRODUCERS - 1),
        st.integers(1, 4),
    ),
    max_size=40,
)


def log_of(history: list[Event]) -> tuple[list[bytes], list[State | int]]:
    """Return the batches, and for each offset its state, or the producer whose marker decides."""
    batches: list[bytes] = []
    states: list[State | int] = []
    for event in history:
        here, producer = len(states), event.producer_id
        if event.kind == "gap":
            states += [S.COMPACTED] * event.count
        elif event.kind in ("data", "plain"):
            of = {"producer_id": producer, "producer_epoch": 0, "transactional": True, "base_sequence": 0}
            batches.append(batch(here, event.count, **(of if event.kind == "data" else {})))
            states += [producer if event.kind == "data" else S.COMMITTED] * event.count
        else:
            batches.append(marker(here, event.kind, producer))
            outcome = S.COMMITTED if event.kind == "commit" else S.ABORTED
            states = [outcome if state == producer and isinstance(state, int) and not isinstance(state, State)
                      else state for state in states]  # fmt: skip
            states.append(S.MARKER)
    while states and states[-1] is S.COMPACTED:
        states.pop()  # nothing follows: the log ends before it
    return batches, states


def expected(states: list[State | int], stable: int) -> list[State]:
    """Return the state of each offset: what has no marker is open, what lies behind it is held back."""
    found = []
    for offset, state in enumerate(states):
        known = state if isinstance(state, State) else S.OPEN
        is_held = offset >= stable and known in (S.COMMITTED, S.ABORTED)
        found.append(S.HELD_BACK if is_held else known)
    return found


def check(strip: Strip, states: list[State], cells: int) -> None:
    assert len(strip.cells) <= max(cells, 2)
    offsets = [offset for cell in strip.cells for offset in range(cell.first_offset, cell.last_offset + 1)]
    assert offsets == list(range(strip.start_offset, strip.end_offset)), "every offset is in one cell"
    for cell in strip.cells:
        there = states[cell.first_offset : cell.last_offset + 1]
        assert cell.offsets == Counter(there)
        assert cell.state is min(there, key=list(State).index)
    before = [cell for cell in strip.cells if cell.last_offset < strip.last_stable_offset]
    assert len(before) == strip.stable
    assert all(cell.first_offset >= strip.last_stable_offset for cell in strip.cells[strip.stable :])


@given(events, st.integers(2, 30))
def test_each_offset_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], cells: int
) -> None:
    batches, states = log_of(history)
    view = partition(tmp_path_factory.mktemp("log"), {0: batches})
    stable = view.last_stable_offset
    check(strip_of(view, cells), expected(states, stable), cells)


@given(events, st.integers(2, 10), st.integers(0, 60))
def test_a_part_from_an_offset_on(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], cells: int, start: int
) -> None:
    batches, states = log_of(history)
    view = partition(tmp_path_factory.mktemp("log"), {0: batches})
    start = min(start, view.log_end_offset)
    found = strip_of(view, cells, start_offset=start)
    assert found.start_offset == start
    for cell in found.cells:
        there = expected(states, view.last_stable_offset)[cell.first_offset : cell.last_offset + 1]
        assert cell.offsets == Counter(there)


def test_a_part_of_a_segment_with_very_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its headers come in several parts; those in front of the first cell only count for transactions."""
    monkeypatch.setattr(segment_reader, "MAX_INDEXED_BATCHES", 2)
    monkeypatch.setattr(segment_reader, "MAPPED_WINDOW_BYTES", 200)
    of = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    log = [batch(0, 2, **of), *(batch(2 + i, 1) for i in range(18))]
    log += [batch(22, 2, **of), marker(24, "abort", 7)]  # 20 and 21 were compacted away
    found = strip_of(partition(tmp_path, {0: log}, io="mmap"), 10, start_offset=20)
    assert [cell.state for cell in found.cells] == [S.COMPACTED] * 2 + [S.ABORTED] * 2 + [S.MARKER]


def test_hanging_is_worse_than_open(tmp_path: Path) -> None:
    of = {"producer_epoch": 0, "transactional": True}
    log = [batch(0, 2, producer_id=7, **of), batch(2, 2, producer_id=8, **of)]
    found = strip_of(partition(tmp_path, {0: log}), 2, hanging=[8])
    assert [cell.state for cell in found.cells] == [S.OPEN, S.HANGING]
    assert found.stable == 0


def test_a_missing_segment_is_not_compacted_away(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0, 4)], 8: [batch(8, 4)]})
    assert [cell.state for cell in strip_of(view, 12).cells] == [S.COMMITTED] * 4 + [S.MISSING] * 4 + [
        S.COMMITTED
    ] * 4


def test_an_end_marker_that_was_lost_with_a_segment(tmp_path: Path) -> None:
    of = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    view = partition(tmp_path, {0: [batch(0, 2, **of)], 8: [marker(8, "commit", 7), batch(9, 1)]})
    states = [cell.state for cell in strip_of(view, 10).cells]
    assert states == [S.UNDECIDED] * 2 + [S.MISSING] * 6 + [S.MARKER, S.COMMITTED]


def test_a_closed_segment_that_is_damaged(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0, 2), b"\xff" * 80], 6: [batch(6, 2)]})
    states = [cell.state for cell in strip_of(view, 10).cells]
    assert states == [S.COMMITTED] * 2 + [S.MISSING] * 4 + [S.COMMITTED] * 2


def test_an_empty_log(tmp_path: Path) -> None:
    found = strip_of(partition(tmp_path, {5: []}), 10)
    assert (found.start_offset, found.end_offset, found.cells, found.stable) == (5, 5, [], 0)


def test_a_cell_for_json() -> None:
    assert Cell(3, 6, {S.MARKER: 1, S.ABORTED: 3}).as_dict() == {
        "first_offset": 3,
        "last_offset": 6,
        "state": "aborted",
        "offsets": {"marker": 1, "aborted": 3},
    }


def outcomes(view: PartitionView) -> Counter[str]:
    """Count the offsets of transactional batches by outcome, from the transactions of the log."""
    found: Counter[str] = Counter()
    start = view.log_start_offset
    for transaction in view.iter_transactions():
        found[transaction.outcome] += transaction.records if transaction.first_offset >= start else 0
    return found


WHOLE = [
    each for each in INTACT if each.case.name.startswith(("interleaved", "tv", "open", "hanging", "epochs"))
]


@pytest.mark.parametrize("directory", WHOLE, ids=str)
@pytest.mark.parametrize("cells", [2, 7, 100, 10_000])
def test_golden_logs(directory: Directory, cells: int) -> None:
    """Without gaps the offsets of each outcome are the records of the transactions with that outcome."""
    view = directory.view()
    found: Counter[State] = Counter()
    for cell in strip_of(view, cells).cells:
        found.update(cell.offsets)
    transactions = outcomes(view)
    records = directory.case.expected_records(directory.partition, "read_uncommitted")
    end, stable = view.log_end_offset, view.last_stable_offset
    assert found[S.OPEN] == transactions["open"]
    assert found[S.MARKER] == end - len(records)
    assert found[S.HELD_BACK] + found[S.OPEN] == sum(each["offset"] >= stable for each in records)
    assert found[S.COMMITTED] == len(directory.case.expected_records(directory.partition, "read_committed"))
    assert not found[S.COMPACTED] + found[S.MISSING] + found[S.UNDECIDED]
