"""A log that is truncated while a command reads it: the command exits with a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.logdir.test_truncated_while_read import Log

PROGRAM = """
import os, sys
from txnkafka.storage.formats import segment_reader
scan, calls, path, number = segment_reader.scan, 0, sys.argv[1], int(sys.argv[2])
def truncating(data, **options):
    global calls
    index = scan(data, **options)
    calls += 1
    if calls == number:
        os.truncate(path, 5000)
    return index
segment_reader.scan = truncating
segment_reader.MAPPED_WINDOW_BYTES = 1 << 13
from txnkafka.cli.main import main
sys.argv[1:] = sys.argv[3:]
main()
"""
COMMANDS = {
    "cat": (),
    "verify": ("--level", "records"),
    "export": ("--to", "jsonl", "--threads", "2", "--output"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("scans", [1, 2, 3])
def test_commands_live(tmp_path: Path, command: str, scans: int) -> None:
    log = Log(tmp_path / "log", "none", "mmap")
    arguments = [str(tmp_path / "log"), "--io", "mmap", *COMMANDS[command]]
    arguments += [str(tmp_path / "out")] if command == "export" else []
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(log.path), str(scans), command, *arguments],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert found.returncode in (1, 2), found
    assert "bug in txnkafka" not in found.stderr
    assert log.path.name in found.stderr + found.stdout
