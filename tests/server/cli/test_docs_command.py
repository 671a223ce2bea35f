"""``txnkafka docs``, and what a build without tools says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.unit.cli.conftest import Run
from txnkafka.cli import docs

PLACE = "../../../share/doc/txnkafka"


def test_the_list_has_every_page_with_its_title(run: Run) -> None:
    answer = run("docs")
    assert (answer.status, answer.stderr) == (0, "")
    assert {line.split()[0] for line in answer.lines} >= {path.stem for path in ROOT.glob("docs/*.md")}
    assert ["lso", "Explaining the last stable offset"] in [line.split(None, 1) for line in answer.lines]


def test_a_page_is_printed_as_it_is(run: Run) -> None:
    text = (ROOT / "docs" / "lso.md").read_text(encoding="utf-8")
    assert run("docs", "lso").stdout == text
    assert run("docs", "LSO.md").stdout == text


def test_a_page_that_is_not_there(run: Run) -> None:
    answer = run("docs", "lsso")
    assert answer.status == 2
    assert "no page lsso; the pages are " in answer.stderr


def test_pages_of_an_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are found by the list of files that was installed."""

    class File:
        def __init__(self, path: str) -> None:
            self.path = path

        def as_posix(self) -> str:
            return self.path

        def locate(self) -> Path:
            return tmp_path / self.path

    class Distribution:
        names = ("txnkafka/cli/docs.py", f"{PLACE}/lso.md", f"{PLACE}/pictures/lso-80.svg")
        files = tuple(map(File, names))

    monkeypatch.setattr(docs.txnkafka, "__file__", str(tmp_path / "lib" / "txnkafka" / "__init__.py"))
    monkeypatch.setattr(docs, "distribution", lambda name: Distribution)
    assert docs.pages() == {"lso": tmp_path / PLACE / "lso.md"}


def test_a_build_without_a_compiler_says_what_to_install(tmp_path: Path) -> None:
    environment = {**os.environ, "CC": "no-such-compiler -O2"}
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "txnkafka cannot be compiled without a C compiler (no-such-compiler; CC names another one). "
        "Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc; macOS: xcode-select --install"
    )
