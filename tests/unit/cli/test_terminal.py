"""Colours, the width of lines, characters that an encoding lacks, and the line of progress."""

from __future__ import annotations

import io
import pkgutil
import sys
import time
from pathlib import Path

import pytest

from tests.models.log_directory import LogDirectory
from tests.unit.cli.conftest import FIRST_SEGMENT, Run
from tests.unit.cli.terminals import as_terminal
from txnkafka import LogDir, TopicPartition
from txnkafka.cli import progress as progress_module
from txnkafka.cli.output import Messages
from txnkafka.cli.progress import Progress
from txnkafka.cli.terminal import StatusLine, status_line
from txnkafka.logdir.verify import verify

RED, YELLOW, GREEN = "\x1b[31m", "\x1b[33m", "\x1b[32m"


def damaged(log_dir: Path) -> Path:
    path = log_dir / "orders-1" / FIRST_SEGMENT
    path.write_bytes(path.read_bytes() + b"\1" * 20)
    return log_dir


def test_severities_and_verdicts_have_colours(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_terminal(monkeypatch, 100, colours=True)
    answer = run("lso", damaged(log_dir))
    assert f"orders-0  {YELLOW}UNKNOWN_NO_COORDINATOR_DATA\x1b[0m" in answer.stdout
    assert f"orders-1  {GREEN}NOT_STUCK\x1b[0m" in answer.stdout
    assert f"txnkafka: {YELLOW}warning\x1b[0m:" in answer.stderr
    assert f"txnkafka: {RED}error\x1b[0m:" in run("ls", log_dir / "nowhere").stderr
    assert f"{YELLOW}warning\x1b[0m:" in run("verify", log_dir).stdout
    assert f"{YELLOW}UNKNOWN_NO_COORDINATOR_DATA\x1b[0m" in run("lso", log_dir, "--format", "wide").stdout


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_verdict_has_its_colour_in_whichever_line_it_stands(
    run: Run, cluster: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    as_terminal(monkeypatch, columns, colours=True)
    answer = run("groups", cluster, "--now", "2030-01-01")
    assert f"{RED}OPEN_OVERDUE\x1b[0m" in answer.stdout.partition("behind")[2]


@pytest.mark.parametrize("reason", ["a pipe", "NO_COLOR", "TERM"])
@pytest.mark.parametrize("command", ["ls", "lso", "show", "stats", "verify", "lso --format wide"])
def test_no_colours(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch, reason: str, command: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if reason != "a pipe":
        as_terminal(monkeypatch, 100, colours=True)
        monkeypatch.setenv(reason, {"NO_COLOR": "1", "TERM": "dumb"}[reason])
    name, *options = command.split()
    answer = run(name, damaged(log_dir), *options)
    assert "\x1b" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_lines_end_between_words(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    piped = [run(name, damaged(log_dir)) for name in ("lso", "verify")]
    as_terminal(monkeypatch, columns)
    for before, name in zip(piped, ("lso", "verify"), strict=True):
        answer = run(name, log_dir)
        words = (before.stdout.split(), before.stderr.split())
        if name == "verify":
            assert (answer.stdout.split(), answer.stderr.split()) == words
        too_long = [line for line in (answer.stdout + answer.stderr).splitlines() if len(line) > columns]
        assert [line for line in too_long if " " in line.strip()] == [], "only what has no spaces"


def test_a_command_to_copy_stays_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.unit.cli.test_lso import TIMEOUT, open_for

    open_for(tmp_path, TIMEOUT + 1)
    as_terminal(monkeypatch, 60)
    assert run("lso", tmp_path, "--topic", "a").lines[-1].endswith("--transactionalId shop")


def test_symbols_of_the_encoding(run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\N{BLACK SQUARE}" in run("show", log_dir).stdout
    monkeypatch.setattr(type(sys.stdout), "encoding", "latin-1", raising=False)
    answer = run("show", log_dir)
    assert answer.stdout.isascii()
    assert answer.lines[1] == "  ###|x|o"


# Progress


def test_progress_says_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.0, 0.2, 61.0, 62.0, 63.0, 64.0])
    monkeypatch.setattr(progress_module, "running_seconds", lambda: next(seconds))
    progress = Progress(Messages())
    assert progress.text == "opening the directory (0:00)"
    progress.partitions(3000)
    progress.partition(TopicPartition("orders", 3), 3 << 20)
    progress.read(1 << 20)
    assert progress.text == "partition 1 of 3,000, orders-3, 1.0 MiB of 3.0 MiB (1:01)"
    progress.partition(TopicPartition("orders", 4))
    assert progress.text == "partition 2 of 3,000, orders-4 (1:02)"
    progress.phase("loading __transaction_state")
    assert progress.text == "loading __transaction_state (1:03)"
    progress.amount("writing", 1 << 20, 3 << 20)
    assert progress.text == "writing, 1.0 MiB of 3.0 MiB (1:04)"


def slow_until_drawn(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a function wait until the line of progress was drawn twice."""
    drawn: list[str] = []
    draw, whole = StatusLine.show, pkgutil.resolve_name(name)

    def show(self: StatusLine, text: str) -> None:
        draw(self, text)
        drawn.append(text)

    def slow(*arguments: object, **options: object) -> object:
        for _ in range(1000):
            if len(drawn) > 1:
                break
            time.sleep(0.01)
        return whole(*arguments, **options)

    monkeypatch.setattr(progress_module, "INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(StatusLine, "show", show)
    monkeypatch.setattr(name, slow)


SLOW = {
    "repair --dry-run": "txnkafka.storage.data_directory.DataDirectory.close",
    "handover --check --to kafka": "txnkafka.handover.hand_over.check",
    "export --to jsonl --output out": "txnkafka.cli.export_run.export",
    **dict.fromkeys(
        ("verify", "ls", "lso", "show", "stats", "txns", "groups"), "txnkafka.logdir.LogDir.__init__"
    ),
}


@pytest.mark.parametrize("command", SLOW)
def test_progress_moves_while_a_command_waits(
    run: Run, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Even opening a directory, or planning, which counts nothing, is not silent."""
    monkeypatch.chdir(tmp_path)
    name, *options = command.split()
    as_terminal(monkeypatch, 80)
    slow_until_drawn(monkeypatch, SLOW[command])
    answer = run(name, log_dir, *options)
    assert answer.stderr.count(" (0:0") > 1
    cleared = answer.stderr.rpartition("\r")[2]
    assert " (0:0" not in cleared
    assert "\r" not in answer.stdout


@pytest.mark.parametrize("command", ["verify", "-q verify"])
def test_no_progress(run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """In a pipe, or with -q."""
    monkeypatch.setattr(progress_module, "INTERVAL_SECONDS", 0.0)
    if "-q" in command:
        as_terminal(monkeypatch, 80)
    assert run(*command.split(), log_dir).stderr == ""


def test_verify_counts_partitions_and_bytes(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "sound").write()
    seen: list[str] = []
    progress = Progress(Messages())
    progress.partitions(1)

    def read(path: str, size: int) -> None:
        progress.read(size)
        seen.append(progress.text)

    verify(
        LogDir(str(directory.root)),
        on_partition=lambda view: progress.partition(view.topic_partition, 100),
        progress=read,
    )
    assert seen
    assert all(text.startswith("partition 1 of 1, t-0, ") for text in seen)


def test_other_output_clears_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "20")
    status_line.show("partition 1 of 3,000, orders-3")
    assert screen.getvalue() == "\rpartition 1 of 3,00"
    Messages().note("x")
    assert screen.getvalue().endswith(f"\r{' ' * 19}\rtxnkafka: note: x\n")
    with status_line.cleared() as was_shown:
        assert not was_shown
    assert screen.getvalue().endswith("note: x\n"), "cleared once"
