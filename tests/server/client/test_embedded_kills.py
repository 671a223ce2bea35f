"""A program with an embedded broker is killed again and again; TXNKAFKA_KILLS says how often, and
TXNKAFKA_SEED when. Each record that it copies in transactions arrives once, and the offsets of its group move
with them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.conftest import BRIEF
from tests.server.client.copying import IN, PARTITIONS
from txnkafka import LogDir

KILLS = int(os.environ.get("TXNKAFKA_KILLS", "5" if BRIEF else "60"))
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))
ROOT = Path(__file__).resolve().parents[3]
LINE_SECONDS = 60


def run_and_kill(data: Path, seconds: float, after: str = "open") -> tuple[int, int]:
    """Run the program, and kill it some seconds after its first line with the word ``after``. Returns the
    largest numbers that were acknowledged and copied, -1 for none."""
    command = [sys.executable, "-m", "tests.server.client.copying", str(data)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    watchdog = threading.Timer(LINE_SECONDS, process.kill)
    watchdog.start()
    numbers, is_reached = {"sent": -1, "copied": -1}, False
    for line in process.stdout:
        kind, _, number = line.rstrip("\n").partition(" ")
        if not is_reached and kind == after:
            is_reached = True
            watchdog.cancel()
            threading.Timer(seconds, process.kill).start()
        if kind in numbers and line.endswith("\n"):
            numbers[kind] = max(numbers[kind], int(number))
    _, errors = process.communicate()
    assert is_reached, f"no line {after!r} after {LINE_SECONDS} s\n{errors}"
    assert process.returncode == -9, errors
    assert "Traceback" not in errors, errors
    return numbers["sent"], numbers["copied"]


def check(data: Path, sent: int, copied: int) -> int:
    """Check what a read_committed consumer gets from the directory; returns the number of copies."""
    log_dir = LogDir(data)
    values = [int(record.value or b"") for record in log_dir.partition(*IN).records()]
    assert values == list(range(len(values)))
    assert len(values) > sent
    copies = []
    for number in range(PARTITIONS):
        found = [int(record.value or b"") for record in log_dir.partition("out", number).records()]
        assert found == sorted(found)
        copies += found
    assert sorted(copies) == list(range(len(copies)))
    assert len(copies) > copied
    return len(copies)


def test_each_record_is_copied_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, rng = tmp_path / "data", random.Random(SEED)
    sent = copied = -1
    for _ in range(KILLS):
        now_sent, now_copied = run_and_kill(data, rng.uniform(0.0, 0.8), rng.choice(["open", "sent"]))
        sent, copied = max(sent, now_sent), max(copied, now_copied)
        check(data, sent, copied)
    # a slow machine kills each run before its first copy; this one copies after all of them
    _, copied = run_and_kill(data, 0.2, "copied")
    assert copied >= 0
    copies = check(data, sent, copied)
    offsets = {group: each.offset for (group, *_), each in LogDir(data).committed_offsets().items()}
    assert offsets["copier"] in range(copies - 4, copies + 1)
    with capsys.disabled():
        print(f"\n{KILLS} kills, {sent + 1:,} records acknowledged, {copied + 1:,} copied")
