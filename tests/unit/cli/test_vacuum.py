"""``txnkafka vacuum``: lists and removes staged files by age."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run

HOUR_S = 3600


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    """Files of an hour, a day and two weeks, and one that is not staged."""
    folder = tmp_path / "data.staging"
    folder.mkdir()
    for letter, hours in (("a", 1), ("b", 24), ("c", 14 * 24)):
        path = folder / f"{letter * 32}.staged"
        path.write_bytes(b"x" * 2048)
        os.utime(path, times=(time.time() - hours * HOUR_S - 10,) * 2)
    (folder / "notes.txt").write_text("")
    return folder


def left(staging: Path) -> list[str]:
    return sorted(path.name[0] for path in staging.iterdir())


def test_the_files_are_listed(run: Run, staging: Path) -> None:
    answer = run("vacuum", staging)
    (line,) = answer.lines
    assert line.endswith(f"  {staging}/{'c' * 32}.staged")
    assert answer.stderr == ("txnkafka: note: 1 file, 2.0 KiB, older than the age: --remove removes them\n")
    assert (answer.status, left(staging)) == (0, ["a", "b", "c", "n"])


@pytest.mark.parametrize(
    ("age", "names"), [("12h", ["a", "n"]), ("3599s", ["n"]), ("59m", ["n"]), ("30d", ["a", "b", "c", "n"])]
)
def test_the_files_are_removed(run: Run, staging: Path, age: str, names: list[str]) -> None:
    """Named by the target, beside which they are."""
    target = staging.with_name("data")
    target.mkdir()
    answer = run("vacuum", target, "--older-than", age, "--remove")
    assert (answer.status, left(staging)) == (0, names)
    assert len(answer.lines) == 4 - len(names)


def test_wrong_arguments(run: Run, tmp_path: Path) -> None:
    assert "is not an age such as 90m, 12h or 7d" in run("vacuum", tmp_path, "--older-than", "week").stderr
    answer = run("vacuum", tmp_path / "gone")
    assert answer.status == 2
    assert "No such file or directory" in answer.stderr
