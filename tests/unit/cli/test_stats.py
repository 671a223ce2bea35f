"""``txnkafka stats``: the content and the format of its rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.logdir.logs import batch, write_log


def test_a_row_a_partition(run: Run, log_dir: Path) -> None:
    answer = run("stats", log_dir, "--format", "json")
    first, second = json.loads(answer.stdout)
    assert (answer.status, answer.stderr) == (0, "")
    assert (first["batches"], first["records"], first["control_batches"]) == (4, 5, 2)
    assert first["codecs"]["gzip"]["batch_share"] == 0.25
    outcomes = ("committed", "aborted", "open", "undecided")
    assert [first[f"{each}_transactions"] for each in outcomes] == [1, 1, 1, 0]
    assert (first["abort_rate"], first["aborted_record_rate"]) == (0.5, 0.5)
    assert first["transaction_ms"] == {"min": 1000, "mean": 1000.0, "p50": 1000, "p99": 1000, "max": 1000}
    assert (second["partition"], second["records"], second["abort_rate"]) == (1, 1, None)


@pytest.mark.parametrize(
    ("by", "keys"),
    [("topic", [["orders"]]), ("partition", [["orders", "0"], ["orders", "1"]]),
     ("producer", [["-1", "-"], ["7", "-"], ["8", "-"], ["9", "-"]])],
)  # fmt: skip
@pytest.mark.parametrize("form", ["text", "wide"])
def test_a_table(run: Run, log_dir: Path, by: str, keys: list[list[str]], form: str) -> None:
    names, *rows = (line.split() for line in run("stats", log_dir, "--by", by, "--format", form).lines)
    assert "batches" in names
    assert [row[: len(keys[0])] for row in rows] == keys


def test_whose_producer_it_is(run: Run, log_dir: Path) -> None:
    rows = [json.loads(line) for line in run("stats", log_dir, "--by", "producer", "--format", "jsonl").lines]
    assert [row["producer_id"] for row in rows] == [-1, 7, 8, 9]
    assert [row["aborted_transactions"] for row in rows] == [0, 0, 1, 0]
    assert {row["transactional_id"] for row in rows} == {None}


def test_damage_is_reported_and_not_counted(run: Run, tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0), b"\xff" * 80], 2: [batch(2)]})
    answer = run("stats", tmp_path, "--format", "json")
    assert (answer.status, json.loads(answer.stdout)[0]["records"]) == (1, 4)
    assert "[damaged-segment]" in answer.stderr


def test_a_partition_without_a_batch(run: Run, tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: []})
    (row,) = json.loads(run("stats", tmp_path, "--format", "json").stdout)
    assert (row["batches"], row["batch_bytes"]["p50"], row["codecs"]) == (0, None, {})


def test_a_misplaced_batch_is_not_counted(run: Run, tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0), batch(2 + 64), batch(4, 3)]})
    (row,) = json.loads(run("stats", tmp_path, "--format", "json").stdout)
    assert (row["batches"], row["records"]) == (2, 5)
