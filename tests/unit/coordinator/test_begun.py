"""Since when transactions are open, on a clock that is put back."""

from __future__ import annotations

from tests.unit.coordinator.transition_cases import ID, STARTED, state_of
from txnkafka.coordinator.txn.begun import Begun
from txnkafka.wire.records import TransactionState

OPEN = state_of(TransactionState.ONGOING)


def test_a_beginning_in_the_past_counts() -> None:
    begun = Begun()
    assert begun.by([OPEN], STARTED, 0) == {ID: STARTED}
    assert begun.by([OPEN], STARTED + 5, 5) == {ID: STARTED}
    assert begun.by([], STARTED + 5, 5) == {}


def test_a_beginning_in_the_future_counts_from_when_it_is_seen() -> None:
    begun = Begun()
    seen = [begun.by([OPEN], now, ticks)[ID] for now, ticks in ((STARTED - 9, 100), (STARTED - 5, 104))]
    assert seen == [STARTED - 9] * 2
    assert begun.by([OPEN], STARTED - 20, 106) == {ID: STARTED - 26}  # put back once more
    following = OPEN._replace(start_timestamp=STARTED + 2)  # another transaction of the same id
    assert begun.by([following], STARTED - 19, 107) == {ID: STARTED - 19}


def test_a_clock_that_was_put_back_for_a_moment_makes_no_transaction_older() -> None:
    begun = Begun()
    hour = 3_600_000
    assert begun.by([OPEN], STARTED + 6 - hour, 6) == {ID: STARTED + 6 - hour}
    assert begun.by([OPEN], STARTED + 11 - hour, 11) == {ID: STARTED + 6 - hour}
    assert begun.by([OPEN], STARTED + 12, 12) == {ID: STARTED}
    assert begun.by([OPEN], STARTED + 13 - hour, 13) == {ID: STARTED + 13 - hour}  # and once more
