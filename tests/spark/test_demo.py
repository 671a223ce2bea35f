"""`make demo` shows correct results, as its own process in a checkout where nothing was made yet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demo.pipeline import check_invoices
from tests.pages import ROOT


@pytest.mark.slow
def test_the_demo_shows_committed_hidden_and_waiting_records(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "demo", tmp_path / "demo", copy_function=shutil.copyfile)
    for name in ("txnkafka", "pyspark_txnkafka.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    result = subprocess.run(
        [sys.executable, "demo/run.py"],
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    shown = result.stdout
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.split() for line in shown.splitlines()]
    assert ["payments-0", "17", "6", "2", "9", "6"] in lines
    assert "  ■■||" in shown
    assert "payments-0  HANGING_PARTITION_NOT_IN_TXN" in shown
    assert "1 group waits: ledger" in " ".join(shown.split())
    assert "✓ 25 committed records" in shown
    assert "✓ 48 committed orders, one invoice each" in " ".join(shown.split())
    assert "source .venv/bin/activate" in shown
    # commands are not folded, so that they can be copied
    prose = [line for line in shown.splitlines() if not line.lstrip().startswith(("$", "kafka-"))]
    assert max(map(len, prose)) <= 80


@pytest.mark.parametrize(
    "invoices",
    [[b"a"], [b"a", b"b", b"b"], [b"a", b"b", b"aborted"], [b"a", b"b", None]],
    ids=["lost", "twice", "of-an-aborted-order", "without-an-order"],
)
def test_the_check_of_invoices_refuses(invoices: list[bytes | None]) -> None:
    with pytest.raises(SystemExit, match=r"the consumer has [0-9]+ invoices of 2 orders; lost: "):
        check_invoices("the consumer", [b"a", b"b"], invoices)


def test_the_check_of_invoices_takes_any_order() -> None:
    check_invoices("the consumer", [b"a", b"b"], [b"b", b"a"])
