"""A time for deadlines that never goes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txnkafka.coordinator.ticks import Ticks


def test_ticks_are_the_wall_clock_until_that_is_put_back() -> None:
    ticks = Ticks()
    assert [ticks.at(now) for now in (5, 9, 9, 100)] == [5, 9, 9, 100]
    assert [ticks.at(now) for now in (40, 41, 50)] == [100, 101, 110]
    assert ticks.wall(120) == 60


@given(st.lists(st.integers(0, 10**13), min_size=1))
def test_ticks_never_go_back_and_pass_as_the_clock_does(times: list[int]) -> None:
    ticks = Ticks()
    before, ticked = times[0], ticks.at(times[0])
    for now in times[1:]:
        following = ticks.at(now)
        assert following - ticked == max(now - before, 0)
        assert ticks.wall(following) == now
        before, ticked = now, following
