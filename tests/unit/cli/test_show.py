"""``txnkafka show``: strips as text and JSON, exit statuses, and the strip in ``lso``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.terminals import as_terminal
from tests.unit.cli.test_lso import START, TIMEOUT, open_for
from tests.unit.logdir.logs import batch, marker, write_log

SYMBOLS = "\N{BLACK SQUARE}", "\N{MULTIPLICATION SIGN}", "\N{WHITE CIRCLE}", "\N{MEDIUM SHADE}"
COMMITTED, ABORTED, OPEN, HELD_BACK = SYMBOLS


def test_a_strip_with_the_last_stable_offset_under_it(run: Run, log_dir: Path) -> None:
    answer = run("show", log_dir)
    assert (answer.status, answer.stderr) == (1, "")
    assert answer.lines[:6] == [
        "orders-0  UNKNOWN_NO_COORDINATOR_DATA: offsets 0 to 6, an offset a cell",
        f"  {COMMITTED * 3}|{ABORTED}|{OPEN}",
        "  LSO 6 ^",
        "orders-1  NOT_STUCK: offset 0, an offset a cell",
        f"  {COMMITTED}",
        "   ^ LSO 1",
    ]
    assert answer.lines[7] == (
        f"  A cell shows the worst state in it, in this order: {OPEN} open, {ABORTED} aborted, "
        f"{COMMITTED} committed or not transactional, | marker."
    )
    assert answer.lines[-1] == "1 of 2 partitions is stuck"


def test_only_stuck_partitions(run: Run, log_dir: Path) -> None:
    answer = run("show", log_dir, "--stuck")
    assert [line for line in answer.lines if line.startswith("orders-")] == [run("show", log_dir).lines[0]]
    assert answer.lines[-1] == "1 of 2 partitions is stuck"
    answer = run("show", log_dir, "--stuck", "--partition", "orders-1")
    assert (answer.status, answer.lines) == (0, ["0 of 1 partition is stuck"])


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_strip_is_as_wide_as_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    write_log(tmp_path, "a-0", {0: [batch(4 * i, 4) for i in range(100)]})
    as_terminal(monkeypatch, columns)
    head, strip, pointer, *_ = run("show", tmp_path).lines
    assert head.endswith(f"offsets 0 to 399, up to {-(-400 // (columns - 4))} offsets a cell")
    assert strip == "  " + COMMITTED * (columns - 4)
    assert pointer == f"{'LSO 400 ^':>{columns - 1}}"


def test_the_ranges_as_json(run: Run, log_dir: Path) -> None:
    (row, other) = json.loads(run("show", log_dir, "--cells", 3, "--format", "json").stdout)
    assert row == {
        "topic": "orders",
        "partition": 0,
        "log_start_offset": 0,
        "log_end_offset": 7,
        "high_watermark": 7,
        "last_stable_offset": 6,
        "verdict": "UNKNOWN_NO_COORDINATOR_DATA",
        "is_stuck": True,
        "start_offset": 0,
        "end_offset": 7,
        "cells": [
            {"first_offset": 0, "last_offset": 2, "state": "committed", "offsets": {"committed": 3}},
            {"first_offset": 3, "last_offset": 5, "state": "aborted", "offsets": {"aborted": 1, "marker": 2}},
            {"first_offset": 6, "last_offset": 6, "state": "open", "offsets": {"open": 1}},
        ],
    }
    lines = run("show", log_dir, "--cells", 3, "--format", "jsonl").lines
    assert [json.loads(line) for line in lines] == [row, other]


def test_a_partition_that_cannot_be_read(run: Run, log_dir: Path) -> None:
    (log_dir / "orders-0" / f"{0:020}.log").unlink()
    (log_dir / "orders-0" / f"{0:020}.log").mkdir()
    answer = run("show", log_dir)
    assert answer.status == 2
    assert answer.stderr.startswith("txnkafka: error: orders-0: ")
    assert answer.lines[0].startswith("orders-1")


def test_an_empty_partition(run: Run, tmp_path: Path) -> None:
    write_log(tmp_path, "a-0", {5: []})
    assert run("show", tmp_path).lines == ["a-0  NOT_STUCK: empty, the next offset is 5"]


def test_lso_draws_a_stuck_partition_from_a_bit_before_it(tmp_path: Path, run: Run) -> None:
    """What is far in front of the last stable offset is not read for it."""
    open_for(tmp_path, TIMEOUT + 1)
    of = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    log = [
        *(batch(3 * i, 3) for i in range(100)),
        batch(300, 2, **of),
        batch(302, 3),
        marker(305, "commit", 9),
    ]
    write_log(tmp_path, "a-0", {0: log})
    lines = run("lso", tmp_path, "--topic", "a").lines
    extent = "  The end of the log, offsets 281 to 305, an offset a cell; offsets 0 to 280 are left out here:"
    assert lines[2:5] == [extent, f"  {COMMITTED * 19}{OPEN * 2}{HELD_BACK * 3}|", f"{'LSO 300 ^':>22}"]
    assert lines[5].startswith("  A cell shows the worst state")
    answer = run("lso", tmp_path, "--topic", "a", "--now", START)
    assert answer.lines[0] == "a-0  OPEN_WITHIN_TIMEOUT"
    assert OPEN * 2 not in answer.stdout, "not stuck, not drawn"


def test_a_later_legend_is_true_of_the_strip_above_it(tmp_path: Path, run: Run) -> None:
    """It listed the new symbols only, and said that a cell shows the first of these that is in it."""
    open_for(tmp_path, TIMEOUT + 1)
    held = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    aborted = batch(3, 2, producer_id=8, producer_epoch=0, transactional=True)
    write_log(tmp_path, "a-0", {0: [batch(0, 3), batch(3, 2, **held)]})
    write_log(tmp_path, "b-0", {0: [batch(0, 3), aborted, marker(5, "abort", 8), batch(6, 2, **held)]})
    write_log(tmp_path, "c-0", {0: [batch(0, 3), batch(3, 2, **held)]})
    lines = run("lso", tmp_path, "--topic", "[abc]").lines
    explained = [line.partition(": ")[2] for line in lines if line.startswith("  A cell shows")]
    committed = f"{COMMITTED} committed or not transactional"
    assert explained == [
        f"{OPEN} open, {committed}.",
        f"? hanging, {OPEN} open, {ABORTED} aborted, {committed}, | marker.",
    ]  # fmt: skip
