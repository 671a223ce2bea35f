"""What notebooks show: tables of what is there, with all text escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import LogDir
from txnkafka.logdir import display


class Cells(HTMLParser):
    """The text of each cell, and the names of all elements."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.elements: set[str] = set()
        self.feed(content)

    def handle_starttag(self, tag: str, _: object) -> None:
        self.elements.add(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1].append(data)


ELEMENTS = {"table", "caption", "thead", "tbody", "tr", "th", "td"}


def shown(thing: object) -> list[list[str]]:
    cells = Cells(thing._repr_html_())  # type: ignore[attr-defined]
    assert cells.elements <= ELEMENTS
    return cells.rows


def test_a_directory_and_its_parts(tmp_path: Path) -> None:
    transactional = {"transactional": True, "producer_id": 1, "producer_epoch": 0}
    write_log(tmp_path, "orders-0", {0: [batch(0, **transactional), marker(2, "abort", 1), batch(3, 5)]})
    write_log(tmp_path, "orders-1", {0: [batch(0)]})
    log_dir = LogDir(tmp_path)
    assert shown(log_dir) == [["topic", "partitions", "topic id"], ["orders", "2", "unknown"]]
    directories = [["orders", str(i), str(tmp_path / f"orders-{i}")] for i in range(2)]
    assert shown(log_dir.topic("orders")) == [["topic", "partition", "directory"], *directories]
    orders = log_dir.partition("orders", 0)
    assert ["log end offset", "8"] in shown(orders)
    assert ["high watermark", "unknown"] in shown(orders)
    row = shown(orders.transactions())[1]
    assert row[:6] == ["aborted", "1", "0", "0", "2", "2"]
    assert row[-1] == "1970-01-01 00:00:01.000"
    assert shown(orders.aborted_transactions()) == shown(orders.transactions())
    assert orders.transactions() == list(orders.iter_transactions())


def test_names_are_text(tmp_path: Path) -> None:
    write_log(tmp_path / "<script>alert(1)&", "<b>\x1b[2J-0", {0: [batch(0)]})
    log_dir = LogDir(tmp_path / "<script>alert(1)&")
    assert shown(log_dir)[1][0] == r"<b>\x1b[2J"
    content = log_dir._repr_html_() + log_dir.partition("<b>\x1b[2J", 0)._repr_html_()
    assert "<script" not in content
    assert "<b>" not in content
    assert "\x1b" not in content


def test_many_rows_are_counted(tmp_path: Path) -> None:
    for i in range(display.ROWS + 7):
        write_log(tmp_path, f"t{i}-0", {0: [batch(0)]})
    rows = shown(LogDir(tmp_path))
    assert (len(rows), rows[-1]) == (display.ROWS + 2, ["and 7 more"])


def test_a_partition_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    directory = write_log(tmp_path, "t-0", {0: [batch(0)]})
    view = LogDir(tmp_path).partition("t", 0)
    next(directory.iterdir()).unlink()
    directory.rmdir()
    (row,) = (row for row in shown(view) if row)
    assert row[0] == "error"
    assert re.search("t-0", row[1])
