"""Counts, durations and sizes are in units that people read at a glance."""

from __future__ import annotations

import pytest

from txnkafka.shown import counted, duration, offset_range, size


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (742, "742 ms"),
        (7_199, "7.1 s"),
        (59_999, "59.9 s"),
        (60_000, "1 min"),
        (900_000, "15 min"),
        (3_599_999, "59 min 59 s"),
        (72_795_791, "20 h 13 min"),
        (86_400_000, "1 d"),
        (95_253_542_498, "1,102 d 11 h"),
        (-900_000, "-15 min"),
    ],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (72, "72 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (79_440, "77.6 KiB"),
        (1_048_575, "1.0 MiB"),
        (340 << 20, "340 MiB"),
        (1.2 * (1 << 30), "1.2 GiB"),
        (1 << 62, "4,096 PiB"),
    ],
)
def test_sizes(number: float, text: str) -> None:
    assert size(number) == text


def test_one_and_many() -> None:
    assert (counted(1, "record"), counted(3000, "record")) == ("1 record", "3,000 records")
    assert (counted(1, "entry", "entries"), counted(0, "entry", "entries")) == ("1 entry", "0 entries")
    assert (offset_range(5, 5), offset_range(5, 7)) == ("offset 5", "offsets 5 to 7")
