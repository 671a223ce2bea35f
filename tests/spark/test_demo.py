"""`make demo` shows correct results: all of its steps run in the session of these tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from demo.steps import Demo, at_the_end, on_spark, on_the_command_line
from tests.golden.cases import case


def test_the_demo_shows_committed_hidden_and_waiting_records(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    recorded, demo = case("hanging"), Demo()
    on_the_command_line(demo, recorded)
    at_the_end(demo, recorded, on_spark(demo, spark))
    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines()]
    assert ["hang-0", "51", "15", "2", "34", "15"] in lines
    assert ["hang-0", "10", "to", "12", "2", "0", "0", "txn-0"] in lines
    assert ["hang-0", "20", "61", "late-0", "(producer", "2)", "HANGING_PARTITION_NOT_IN_TXN"] in lines
    assert "✓ 70 committed records" in shown
    assert "…" not in shown.partition("Why does it end there?")[2]
    assert max(map(len, shown.splitlines())) <= 90  # only commands may be wider than the terminal
