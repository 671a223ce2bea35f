"""Tables that fit: no number is folded, cut or lost, whatever the width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.terminals import as_terminal
from txnkafka.cli.output import Layout, write_table
from txnkafka.cli.table import aligned, fitted, shortened

NAMES = ("topic", "partition", "bytes", "codecs", "lso")
LAYOUT = Layout(("topic",), ("codecs", "bytes"))
ROWS = [["orders-of-the-northern-branch", "0", "79440", "none:52%", "123456789012"]]

numbers = st.integers(0, 2**63 - 1).map(str)
rows = st.lists(st.tuples(st.text("abc/-", max_size=60), *[numbers] * 4).map(list), max_size=4)


@given(rows, st.integers(20, 160))
def test_numbers_stay_whole(table: list[list[str]], width: int) -> None:
    found = fitted(NAMES, table, LAYOUT, width)
    kept = [i for i, name in enumerate(NAMES) if name in found.names]
    for row, shown in zip(table, found.rows, strict=True):
        assert [row[i] for i in kept if i] == shown[1:]
    assert found.dropped == list(LAYOUT.drop[: len(found.dropped)])
    if found.widths is not None:
        assert all(len("  ".join(line)) <= width for line in aligned(found))
    else:
        assert found.names == list(NAMES), "a block has all fields"


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (200, ["topic", "partition", "bytes", "codecs", "lso"]),
        (70, ["topic", "partition", "bytes", "codecs", "lso"]),
        (60, ["topic", "partition", "bytes", "lso"]),
        (50, ["topic", "partition", "lso"]),
        (38, ["topic", "partition", "lso"]),
    ],
)
def test_first_names_get_shorter_then_columns_go(width: int, columns: list[str]) -> None:
    found = fitted(NAMES, ROWS, LAYOUT, width)
    assert found.names == columns
    assert found.widths is not None


def test_at_last_a_row_is_a_block(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_terminal(monkeypatch, 30)
    write_table(NAMES, [*ROWS, ["a", "1", "2", "-", "3"]], LAYOUT)
    assert capsys.readouterr().out.splitlines() == [
        "topic:",
        "  orders-of-the-northern-branch",
        "partition: 0",
        "bytes: 79440",
        "codecs: none:52%",
        "lso: 123456789012",
        "",
        "topic: a",
        "partition: 1",
        "bytes: 2",
        "codecs: -",
        "lso: 3",
        "",
    ]


def test_columns_that_went_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_terminal(monkeypatch, 40)
    write_table(NAMES, ROWS, LAYOUT)
    head, row, *note = capsys.readouterr().out.splitlines()
    assert head.split() == ["topic", "partition", "lso"]
    assert row.split()[1:] == ["0", "123456789012"]
    assert " ".join(note).replace("  ", "") == "not shown, as the terminal is too narrow: codecs, bytes"


def test_a_pipe_gets_everything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    write_table(NAMES, ROWS, LAYOUT)
    assert capsys.readouterr().out.splitlines()[1].split() == ROWS[0]


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("orders", 6, "orders"),
        ("orders-of-the-north-17", 13, "orders-o\N{HORIZONTAL ELLIPSIS}h-17"),
        ("/var/lib/kafka/orders-0", 10, "\N{HORIZONTAL ELLIPSIS}/orders-0"),
    ],
)
def test_names_keep_what_tells_them_apart(name: str, width: int, short: str) -> None:
    assert shortened(name, width) == short
    assert len(short) <= width


def cells(text: str) -> int:
    """The columns of a terminal, by the rules of wcwidth for what these tests use."""
    marks = sum(char in "\u0301\ufe0f" for char in text)
    return len(text) - marks + sum(char in "注文🙂" for char in text)


wide_names = st.text("ab\u0301/0注文🙂\ufe0f", max_size=40)
wide_rows = st.lists(st.tuples(wide_names, *[numbers] * 4).map(list), max_size=4)


@given(wide_rows, st.integers(20, 160))
def test_wide_and_combining_characters_keep_columns_aligned(table: list[list[str]], width: int) -> None:
    found = fitted(NAMES, table, LAYOUT, width)
    lines = list(aligned(found)) if found.widths is not None else []
    assert all([cells(cell) for cell in line] == found.widths for line in lines)
    assert all(cells("  ".join(line)) <= width for line in lines)


@pytest.mark.parametrize(
    ("name", "width", "text"),
    [
        ("注文注文注文", 12, "注文注文注文"),
        ("注文注文注文", 11, "注文注文…文"),
        ("注文注文注文", 10, "注文注…文"),
        ("/data/注文注文", 8, "…文注文"),
        ("e\u0301" * 9, 5, "e\u0301" * 3 + "…" + "e\u0301"),
    ],
)
def test_a_wide_name_is_shortened_between_characters(name: str, width: int, text: str) -> None:
    assert shortened(name, width) == text
