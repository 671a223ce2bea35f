"""`make demo` shows correct results: all of its steps run in the session of these tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from demo.steps import Demo, at_the_end, on_spark, on_the_command_line


def test_the_demo_shows_committed_hidden_and_waiting_records(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    demo = Demo()
    on_the_command_line(demo)
    at_the_end(demo, on_spark(demo, spark))
    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines()]
    assert ["payments-0", "17", "6", "2", "9", "6"] in lines
    assert "  ■■||" in shown
    assert "payments-0  HANGING_PARTITION_NOT_IN_TXN" in shown
    assert "1 group waits: ledger" in " ".join(shown.split())
    assert "✓ 25 committed records" in shown
    assert "source .venv/bin/activate" in shown
    # commands are not folded, so that they can be copied
    prose = [line for line in shown.splitlines() if not line.lstrip().startswith(("$", "kafka-"))]
    assert max(map(len, prose)) <= 80
