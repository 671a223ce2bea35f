"""Replays into the producer table, rule by rule."""

from __future__ import annotations

import pytest

from tests.models.headers import ABORT, COMMIT, data, marker
from tests.models.producer_state import write_snapshot
from tests.models.record_batch import CONTROL
from tests.unit.core.producers import NEVER, Replayed
from txnkafka.model import ProducerStateEntry

DAY_MS = 86_400_000


def test_a_transaction_from_begin_to_commit() -> None:
    state = Replayed(data(5, 0, 10, last_offset=12))
    assert state.entries() == [(5, 0, -1, 1000, 10, 2, 12, 2)]
    assert state.table.first_undecided_offset == 10
    state.replay([data(5, 0, 13, sequence=3, max_timestamp=1500)])
    assert state.entries() == [(5, 0, -1, 1500, 10, 3, 13, 0)]
    assert state.opened == [(5, 10)]
    state.replay([marker(5, 0, 14, COMMIT, coordinator_epoch=3, max_timestamp=2000)])
    assert state.entries() == [(5, 0, 3, 2000, -1, 3, 13, 0)]
    assert state.completed == [(5, 10, 14, False, 15)]
    assert state.opened == []
    assert state.table.first_undecided_offset is None


def test_a_marker_with_another_epoch_forgets_the_sequences() -> None:
    state = Replayed(data(5, 0, 10), marker(5, 1, 11, ABORT))
    assert state.entries() == [(5, 1, 0, 1000, -1, -1, -1, 0)]
    assert state.completed == [(5, 10, 11, True, 12)]


def test_a_marker_alone_makes_a_producer_but_completes_nothing() -> None:
    state = Replayed(marker(5, 1, 11, COMMIT))
    assert state.entries() == [(5, 1, 0, 1000, -1, -1, -1, 0)]
    assert state.completed == []


def test_last_stable_offset_is_the_oldest_other_open_transaction() -> None:
    state = Replayed(data(1, 0, 0), data(2, 0, 1), data(3, 0, 2))
    state.replay([marker(2, 1, 3, ABORT), marker(1, 1, 4, ABORT)])
    assert state.completed == [(2, 1, 3, True, 0), (1, 0, 4, True, 2)]


def test_lower_epochs_replace_the_state() -> None:
    assert Replayed(data(5, 3, 0, sequence=9), data(5, 1, 1)).entries() == [(5, 1, -1, 1000, 0, 0, 1, 0)]


def test_sequences_wrap_around() -> None:
    state = Replayed(data(5, 0, 0, sequence=2**31 - 1, last_offset=2))
    assert state.entries()[0].last_sequence == 1
    assert state.entries()[0].first_sequence == 2**31 - 1


def test_batches_without_a_producer_change_nothing() -> None:
    plain = [data(-1, -1, i, transactional=False) for i in range(3)]
    state = Replayed(*plain)
    state.replay([])
    assert state.entries() == []


def test_an_idempotent_producer_opens_no_transaction() -> None:
    state = Replayed(data(5, 0, 0, transactional=False))
    assert state.entries() == [(5, 0, -1, 1000, -1, 0, 0, 0)]
    assert state.opened == []


def test_what_ends_below_the_start_is_passed_over() -> None:
    state = Replayed(data(5, 0, 0), data(5, 0, 1, last_offset=4), data(5, 0, 5), start_offset=3)
    assert state.opened == [(5, 1)]
    assert state.entries() == [(5, 0, -1, 1000, 1, 0, 5, 0)]


def test_behind_the_high_watermark_nothing_is_decided() -> None:
    state = Replayed(data(5, 0, 10), marker(5, 1, 11, COMMIT), data(6, 0, 12))
    table = state.table
    unstable = []
    for high_watermark in (11, 12):
        table.on_high_watermark(high_watermark)
        unstable.append(table.first_unstable_offset)
    assert unstable == [10, 12]
    state.replay([marker(6, 1, 13, COMMIT)])
    table.on_high_watermark(14)
    assert table.first_unstable_offset is None


def test_an_emptied_marker_says_nothing() -> None:
    state = Replayed(data(5, 0, 10), marker(5, 1, 11, -1, count=0))
    assert state.entries() == [(5, 0, -1, 1000, 10, 0, 10, 0)]


@pytest.mark.parametrize("control_type", [-1, 2, 5])
def test_a_control_batch_of_another_type_says_nothing(control_type: int) -> None:
    state = Replayed(data(5, 0, 10), marker(5, 1, 11, control_type))
    assert state.opened == [(5, 10)]


class TestEmptiedByTheCleaner:
    """A batch without records was below the last stable offset before, so its transaction was decided."""

    def test_it_opens_no_transaction(self) -> None:
        state = Replayed(data(5, 0, 10, last_offset=14, count=0))
        assert state.table.first_undecided_offset is None
        assert state.entries() == [(5, 0, -1, 1000, -1, 4, 14, 4)]

    def test_its_marker_completes_it(self) -> None:
        state = Replayed(data(5, 0, 10, count=0), data(5, 0, 11, count=0), marker(5, 0, 12, ABORT))
        assert state.completed == [(5, 10, 12, True, 13)]

    def test_records_behind_it_open_their_own(self) -> None:
        state = Replayed(data(5, 0, 10, count=0), data(5, 1, 20))
        assert state.table.first_undecided_offset == 20
        state.replay([marker(5, 1, 21, COMMIT)])
        assert state.completed == [(5, 10, 21, False, 22)]


def loaded(*entries: tuple[int, ...]) -> Replayed:
    state = Replayed()
    content = write_snapshot([ProducerStateEntry(*entry) for entry in entries])
    state.table.load(content, now_ms=0, expiration_ms=NEVER)
    return state


def test_loaded_transactions_are_open() -> None:
    state = loaded((6, 0, -1, 900, 30, 0, 30, 0), (5, 0, -1, 800, 10, 0, 10, 0))
    assert state.opened == [(5, 10), (6, 30)]
    state.replay([data(5, 0, 40, sequence=1, last_offset=41), data(7, 0, 42), marker(7, 1, 43, ABORT)])
    assert state.opened == [(5, 10), (6, 30)]
    assert state.completed == [(7, 42, 43, True, 10)]


def test_loading_replaces_everything() -> None:
    state = Replayed(data(5, 0, 10))
    state.table.load(write_snapshot([]), now_ms=0, expiration_ms=NEVER)
    assert (state.entries(), state.opened) == ([], [])


@pytest.mark.parametrize(
    ("now_ms", "expiration_ms", "known"),
    [(999 + DAY_MS, DAY_MS, [5, 6, 7]), (1000 + DAY_MS, DAY_MS, [6, 7]), (2000, 1, [6])],
)
def test_idle_producers_are_forgotten_unless_a_transaction_is_open(
    now_ms: int, expiration_ms: int, known: list[int]
) -> None:
    state = Replayed(data(5, 0, 0, transactional=False), data(6, 0, 1))
    state.replay([data(7, 0, 2, transactional=False, max_timestamp=1001)])
    state.table.expire(now_ms, expiration_ms)
    assert [entry.producer_id for entry in state.entries()] == known


def test_control_bit_decides_before_the_transactional_bit() -> None:
    odd = marker(5, 0, 11, COMMIT)._replace(attributes=CONTROL)
    assert Replayed(data(5, 0, 10), odd).opened == []
