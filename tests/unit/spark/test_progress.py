"""Progress of planning: silent when it is quick, one line on a terminal, log messages elsewhere."""

from __future__ import annotations

import io
import logging

import pytest

from txnkafka.spark.progress import shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class SteppingClock:
    """A clock that advances by this many milliseconds with each call."""

    def __init__(self, step: int) -> None:
        self.step, self.now = step, 0

    def now_ms(self) -> int:
        self.now += self.step
        return self.now


def test_quick_planning_shows_no_progress() -> None:
    out = Terminal()
    assert list(shown(range(5), 5, "partitions planned", clock=SteppingClock(1), out=out)) == [0, 1, 2, 3, 4]
    assert out.getvalue() == ""


def test_a_terminal_gets_one_line_that_is_wiped_in_the_end() -> None:
    out = Terminal()
    clock = SteppingClock(700)
    assert len(list(shown(range(1500), 1500, "partitions planned", clock=clock, out=out))) == 1500
    written = out.getvalue().split("\r")
    assert written[1] == "partitions planned: 3 of 1,500"
    assert "\n" not in out.getvalue()
    assert [each.strip() for each in written[-2:]] == ["", ""]


def test_progress_goes_to_the_log_without_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "txnkafka.spark")
    out = io.StringIO()
    list(shown(range(4), 4, "partitions planned", clock=SteppingClock(1500), out=out))
    assert out.getvalue() == ""
    # one call before the first item, then one or two after each: 3 s have passed after the second
    assert caplog.messages == ["partitions planned: 2 of 4", "partitions planned: 4 of 4"]
