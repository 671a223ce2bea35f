"""Every spelling of a path gives the same answer: the topic, the checkpoints beside it, every message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, Run
from txnkafka import LogDir, LogDirError

COMMANDS = (
    "ls", "ls --segments", "cat", "verify", "lso --now 0", "show --now 0", "stats",
    "cat --up-to high-watermark",
)  # fmt: skip
# the working directory, the path of orders-0 from there
SPELLINGS = (
    ("orders-0", "."),
    ("orders-0", "./"),
    ("orders-0", "../orders-0"),
    ("orders-0", "../../data/orders-0/"),
    ("", "orders-0"),
    ("", "orders-0/"),
    ("", "./orders-0/."),
    ("", "orders-1/../orders-0"),
    ("", ".//orders-0//"),
    ("orders-1", "../orders-0/./"),
)


@pytest.mark.parametrize(("standing", "path"), SPELLINGS)
def test_a_partition_directory(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch, standing: str, path: str
) -> None:
    for command in COMMANDS:
        name, *options = command.split()
        monkeypatch.chdir(log_dir / standing)
        spelled = run(name, path, *options)
        assert spelled == run(name, log_dir / "orders-0", *options)
        assert spelled == run(name, f"file://{log_dir}/orders-0", *options)


@pytest.mark.parametrize(
    ("standing", "path"),
    [
        ("orders-0", FIRST_SEGMENT),
        ("orders-0", f"./{FIRST_SEGMENT}"),
        ("orders-1", f"../orders-0/{FIRST_SEGMENT}"),
        ("", f"orders-0/./{FIRST_SEGMENT}"),
    ],
)
def test_a_segment(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch, standing: str, path: str
) -> None:
    monkeypatch.chdir(log_dir / standing)
    for command in (*COMMANDS, "dump --records"):
        name, *options = command.split()
        spelled = run(name, path, *options)
        assert spelled == run(name, log_dir / "orders-0" / FIRST_SEGMENT, *options)
    assert '"topic":"orders","partition":0,' in run("cat", path).stdout


@pytest.mark.parametrize("path", [".", "./", "../data", "../data/."])
def test_a_log_directory(run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(log_dir)
    for command in (*COMMANDS, "repair --dry-run"):
        name, *options = command.split()
        assert run(name, path, *options) == run(name, log_dir, *options)


def test_a_partition_keeps_the_name_of_its_link(run: Run, log_dir: Path, tmp_path: Path) -> None:
    """A broker's disk may contain a partition as a symbolic link; ``..`` after it is the parent of its
    target."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (log_dir / "orders-0").rename(elsewhere / "moved")
    (log_dir / "orders-0").symlink_to(elsewhere / "moved")
    assert '"topic":"orders"' in run("cat", log_dir / "orders-0").stdout
    (tmp_path / "orders-7").symlink_to(log_dir / "orders-1")
    answer = run("cat", f"{tmp_path}/orders-7/../orders-0")
    assert (answer.status, answer.stdout) == (0, run("cat", log_dir / "orders-0").stdout)


def test_a_path_twice_is_one_path(run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log_dir)
    assert run("cat", log_dir, ".", "./orders-0") == run("cat", log_dir)


def test_two_segments_of_one_partition(run: Run, log_dir: Path) -> None:
    segment = log_dir / "orders-0" / FIRST_SEGMENT
    other = segment.with_name(f"{7:020}.log")
    other.write_bytes(b"")
    answer = run("cat", segment, other)
    assert (answer.status, answer.stdout) == (2, "")
    expected = f"several segments of {segment.parent} were given; give one of them, or the directory"
    assert expected in answer.stderr


def test_an_empty_path_is_not_the_current_directory(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log_dir)
    answer = run("cat", "")
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr == "txnkafka: error: a path is empty\n"


def test_a_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(LogDirError, match="current directory no longer exists"):
        LogDir(".")
    os.chdir(tmp_path)
