"""Since when transactions are open, on a clock that is put back."""

from __future__ import annotations

from tests.unit.coordinator.transition_cases import ID, STARTED, state_of
from txnkafka.coordinator.begun import Begun
from txnkafka.wire.records import TransactionState

OPEN = state_of(TransactionState.ONGOING)


def test_a_beginning_in_the_past_counts() -> None:
    begun = Begun()
    assert begun.by([OPEN], STARTED) == {ID: STARTED}
    assert begun.by([OPEN], STARTED + 5) == {ID: STARTED}
    assert begun.by([], STARTED + 5) == {}


def test_a_beginning_in_the_future_counts_from_when_it_is_seen() -> None:
    begun = Begun()
    assert [begun.by([OPEN], now)[ID] for now in (STARTED - 9, STARTED - 5)] == [STARTED - 9] * 2
    assert begun.by([OPEN], STARTED - 20) == {ID: STARTED - 20}  # put back once more
    assert begun.by([OPEN], STARTED + 1) == {ID: STARTED - 20}
    following = OPEN._replace(start_timestamp=STARTED + 2)  # another transaction of the same id
    assert begun.by([following], STARTED + 3) == {ID: STARTED + 2}
    assert begun.by([OPEN], STARTED + 4) == {ID: STARTED}
