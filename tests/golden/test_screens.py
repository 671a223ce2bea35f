"""What terminals of several widths show of real directories, compared with text files to be reviewed;
``TXNKAFKA_REWRITE=1`` rewrites them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.expected_text import same_block, same_text
from tests.golden.cases import case
from tests.unit.cli.terminals import as_terminal
from txnkafka.cli.main import main
from txnkafka.env import SystemClock

SCREENS = Path(__file__).with_name("screens")
WIDTHS = (60, 80, 120, 200)
NOW_MS = 1_795_838_400_000  # 2026-11-28, a week after the recording
COMMANDS = {
    "ls": ("ls", "coordinator_logs"),
    "ls-wide": ("ls --format wide", "hanging"),
    "ls-segments": ("ls --segments --topic orders", "interleaved"),
    "lso": ("lso --topic hang", "hanging"),
    "lso-wide": ("lso --format wide", "hanging"),
    "lso-stuck": ("lso --stuck --topic data", "coordinator_logs"),
    "show": ("show", "hanging"),
    "show-compacted": ("show --topic *o*", "compacted"),
    "show-deleted": ("show --topic gone", "deleted"),
    "show-missing-segment": ("show", "clean_missing_segment"),
    "stats": ("stats", "interleaved"),
    "stats-wide": ("stats --topic orders --partition 0 --format wide", "interleaved"),
    "verify": ("verify", "clean_missing_segment"),
    "txns": ("txns", "coordinator_logs"),
    "txns-hanging": ("txns", "hanging"),
    "txns-wide": ("txns --state Ongoing --format wide", "coordinator_logs"),
    "groups": ("groups --group *txn*", "coordinator_logs"),
    "groups-wide": ("groups --group classic --format wide", "coordinator_logs"),
}  # fmt: skip


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a directory whose path is the same everywhere, seen at the same time."""
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: NOW_MS)
    return "memory://kafka"


def load(address: str, name: str) -> None:
    """Copy a golden directory into fsspec's file system in memory."""
    import fsspec

    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    root = case(name).logs
    for path in root.rglob("*"):
        if path.is_file():
            files.pipe(f"{address}/{path.relative_to(root)}", path.read_bytes())


def screen(command: str, address: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    name, *options = command.split()
    with pytest.raises(SystemExit):
        main(["-q", name, address, *options])
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


@pytest.mark.parametrize("name", COMMANDS)
def test_screens(
    name: str, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, directory = COMMANDS[name]
    load(address, directory)
    shown: list[str] = []
    for width in WIDTHS:
        with monkeypatch.context() as patch:
            as_terminal(patch, width)
            lines = screen(command, address, capsys)
        wide = [line for line in lines if len(line) > width and "kafka-transactions.sh" not in line]
        assert [line for line in wide if " " in line.strip()] == []
        shown += [f"$ txnkafka {command}  # {directory}, {width} columns", *lines, ""]
    same_text(SCREENS / f"{name}.txt", "\n".join(shown))


def test_colours(address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    load(address, "hanging")
    as_terminal(monkeypatch, 80, colours=True)
    lines = screen("show", address, capsys)
    same_text(SCREENS / "show-colours.txt", "\n".join([*lines, ""]).replace("\x1b", "ESC"))


def test_ascii(address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    load(address, "hanging")
    as_terminal(monkeypatch, 80)
    monkeypatch.setattr(type(sys.stdout), "encoding", "ascii", raising=False)
    lines = screen("show", address, capsys)
    assert all(line.isascii() for line in lines)
    same_text(SCREENS / "show-ascii.txt", "\n".join([*lines, ""]))


def test_the_example_in_the_documentation(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(address, "hanging")
    command = "show --topic hang"
    page = Path(__file__).parents[2] / "docs" / "lso.md"
    lines = screen(command, address, capsys)
    strips = lines[: lines.index("")]
    same_block(page, "show", "\n".join([f"$ txnkafka {command} /var/lib/kafka/data", *strips, lines[-1], ""]))
