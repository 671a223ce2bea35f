"""Tables, JSON and times as they are printed."""

from __future__ import annotations

import json
import time

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.text import is_command
from txnkafka.cli.output import json_text, printable, write_json, write_table
from txnkafka.cli.times import Timestamp
from txnkafka.shown import iso_time, plain_name


def test_numbers_are_aligned_to_the_right_and_nothing_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(["name", "n"], [["a", 5], ["long name", None], ["b", -100]])
    assert capsys.readouterr().out == "name          n\na             5\nlong name     -\nb          -100\n"


def test_a_table_without_rows_is_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(["name", "n"], [])
    assert capsys.readouterr().out == "name  n\n"


@given(st.text())
def test_nothing_printable_moves_the_cursor(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert text.isprintable() == (shown == text)


@given(st.text(st.characters()))
def test_json_is_valid_for_any_name(text: str) -> None:
    encoded = json_text([text]).encode()  # raises for a surrogate
    assert "\\ud" not in json_text([text]).replace("\\\\", "")
    assert json.loads(encoded) == [plain_name(text)]
    assert is_command("\x9b")
    assert is_command("\x7f")
    assert not any(is_command(each) for each in encoded.decode())


def test_a_name_that_is_no_unicode(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_json({"path": "\udcff", "letter": "\N{LATIN SMALL LETTER E WITH ACUTE}"})
    assert capsysbinary.readouterr().out == b'{"path":"\\\\xff","letter":"\xc3\xa9"}\n'


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "-"),
        (None, "-"),
        (-2, "1969-12-31T23:59:59.998Z"),
        (1_700_000_000_001, "2023-11-14T22:13:20.001Z"),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
    ],
)
def test_times_in_utc(timestamp: int | None, text: str) -> None:
    assert iso_time(timestamp) == text


@given(st.integers(0, 253_402_300_799_999))
def test_a_printed_time_can_be_typed(timestamp: int) -> None:
    assert Timestamp().convert(iso_time(timestamp), None, None) == timestamp
    if timestamp >= 10**11:
        assert Timestamp().convert(str(timestamp), None, None) == timestamp
    else:
        with pytest.raises(click.BadParameter, match="this looks like seconds"):
            Timestamp().convert(str(timestamp), None, None)


def test_now_is_the_machines_time() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= Timestamp().convert("now", None, None) <= time.time_ns() // 1_000_000


def test_a_time_without_zone_is_utc() -> None:
    assert Timestamp().convert("1970-01-01 01:00", None, None) == 3_600_000
    assert Timestamp().convert("1970-01-01T01:00+01:00", None, None) == 0
