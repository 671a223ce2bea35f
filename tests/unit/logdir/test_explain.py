"""Explanations of the last stable offset as objects: in words, as JSON, in a notebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.unit.cli.conftest import Run, run
from tests.unit.logdir.logs import batch, write_log
from tests.unit.logdir.test_display import ELEMENTS, Cells
from txnkafka import LogDir
from txnkafka.errors import LogDirError
from txnkafka.logdir import PartitionView
from txnkafka.logdir.verdict import Verdict

__all__ = ["run"]  # a fixture

DEMO = ROOT / "demo" / "payments"
TOOL = "kafka-transactions.sh --bootstrap-server HOST:PORT"
COMMAND = f"{TOOL} abort --topic payments --partition 0 --start-offset 16"


def hanging() -> PartitionView:
    return LogDir(DEMO).partition("payments", 0)


def without_clock(text: str) -> list[str]:
    """The words of a text, without the name of the option that sets the time."""
    return text.replace("--now", "now_ms").split()


def test_fields_are_those_of_the_command(run: Run) -> None:
    rows = [json.loads(line) for line in run("lso", DEMO, "--topic", "payments", "--format", "jsonl").lines]
    log_dir = LogDir(DEMO)
    assert [view.explain().to_dict() for view in log_dir.partitions("payments")] == rows


def test_words_are_those_of_the_command(run: Run) -> None:
    printed = run("lso", DEMO, "--topic", "payments", "--partition", 0).stdout
    found = hanging().explain()
    begin, end = printed.index("  ■"), printed.index("  It is held by")  # the strip of the command
    assert without_clock(printed[:begin] + printed[end:]) == without_clock(str(found))


def test_evidence_leads_to_the_verdict_and_advice_ends_with_the_command() -> None:
    found = hanging().explain()
    assert found.verdict is Verdict.HANGING_PARTITION_NOT_IN_TXN
    assert (
        found.evidence[0] == "The last stable offset stands at 16, the log ends at 33: 9 records (1.2 KiB) "
        "wait behind it."
    )
    assert found.evidence[-1].endswith("the newest time in this directory; now_ms overrides.")
    assert found.advice[0].startswith("What to do: abort it in this partition, once")
    assert found.advice[-1] == COMMAND
    assert [
        line.text for line in found.lines if line.kind not in ("verdict", "advice", "command")
    ] == found.evidence


def test_repr_is_one_line() -> None:
    assert repr(hanging().explain()) == (
        "Explanation('payments-0', verdict='HANGING_PARTITION_NOT_IN_TXN', last_stable_offset=16, "
        "log_end_offset=33, waiting_records=9)"
    )


def test_a_stable_partition_needs_no_advice(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)]})
    found = LogDir(tmp_path).partition("t", 0).explain()
    assert str(found) == "t-0  NOT_STUCK: everything up to the log end 2 is stable"
    assert (found.evidence, found.advice, found.is_stuck) == ([], [], False)


def test_a_notebook_shows_verdict_evidence_and_advice() -> None:
    found = hanging().explain()
    cells = Cells(found._repr_html_())
    assert cells.elements <= ELEMENTS
    assert cells.rows[-1] == ["command", COMMAND]
    assert [row[0] for row in cells.rows if row] == [line.kind for line in found.lines[1:]]


def test_names_are_text(tmp_path: Path) -> None:
    opened = batch(0, transactional=True, producer_id=7, producer_epoch=0)
    write_log(tmp_path, "<b>\x1b[2J-0", {0: [opened]})
    found = LogDir(tmp_path).partition("<b>\x1b[2J", 0).explain(now_ms=1)
    shown = (repr(found), str(found), *found.evidence, *found.advice, found._repr_html_())
    assert not any("\x1b" in text for text in shown)
    assert "<b>" not in found._repr_html_()
    assert r"<b>\x1b[2J-0" in str(found)


def test_timeouts_are_judged_at_the_given_time(tmp_path: Path) -> None:
    opened = batch(0, transactional=True, producer_id=7, producer_epoch=0)
    write_log(tmp_path, "t-0", {0: [opened]})
    for number in range(50):
        write_log(tmp_path, f"__transaction_state-{number}", {0: []})
    view = LogDir(tmp_path).partition("t", 0)
    last = view.open_transactions[0].last_timestamp
    assert view.explain(now_ms=last + 1).verdict is Verdict.OPEN_WITHIN_TIMEOUT  # not stopped cleanly
    later = view.explain(now_ms=last + 1, max_transaction_timeout_ms=0)
    assert later.verdict is Verdict.HANGING_NO_TRANSACTIONAL_ID
    assert (later.judged.now_ms, later.judged.now_origin) == (last + 1, "as now_ms says")
    with pytest.raises(TypeError, match="now_ms"):
        view.explain(now_ms="2026")  # type: ignore[arg-type]


def test_a_view_without_its_directory_cannot_be_explained() -> None:
    view = PartitionView(hanging().source)
    with pytest.raises(LogDirError, match=r"use LogDir\(path\)\.partition\('payments', 0\)\.explain\(\)"):
        view.explain()
