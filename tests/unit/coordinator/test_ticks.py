"""A time for deadlines that passes whatever the wall clock is set to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txnkafka.coordinator.ticks import Ticks


def test_ticks_are_the_wall_clock_until_a_host_says_how_time_passes() -> None:
    ticks = Ticks(5)
    assert [ticks.at(now) for now in (5, 9, 9, 100)] == [5, 9, 9, 100]
    ticks.tell(7)
    assert [ticks.at(now) for now in (40, 10**13)] == [100, 100]
    ticks.tell(12)
    assert (ticks.now, ticks.at(1)) == (105, 105)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**13)), min_size=1))
def test_ticks_pass_as_the_host_says(moments: list[tuple[int, int]]) -> None:
    ticks, running_ms = Ticks(50), 1
    ticks.tell(running_ms)
    for passed_ms, now_ms in moments:
        running_ms += passed_ms
        ticks.tell(running_ms)
        assert ticks.at(now_ms) == 49 + running_ms
