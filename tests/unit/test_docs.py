"""Examples of docs/python.md and docs/writing.md print the shown output; maps of the code name real files."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

import txnkafka.log
from tests.pages import ROOT, examples
from txnkafka.errors import ProduceError

MAPPED_ROOMS = ("memory", "reading", "server", "storage")


def test_the_examples_of_reading_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = examples("docs/python.md")
    assert len(found) == 13
    names: dict[str, object] = {}
    for example in found:
        assert example.run(names) == example.printed
    assert names["total"] == 7
    assert names["late"]["offset"].to_pylist() == [5, 6]  # type: ignore[index]
    assert names["everything"]["offset"].to_pylist() == names["numbers"]  # type: ignore[index]
    assert names["table"].num_rows == 7  # type: ignore[attr-defined]
    assert names["found"] == list(range(7))
    assert names["left_out"] == []
    assert not any("base_offset=" in example.source for example in found), "such a batch cannot be appended"


@pytest.mark.process
def test_the_examples_of_writing_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = examples("docs/writing.md")
    assert len(found) == 9
    for _ in range(2):
        names: dict[str, object] = {}
        for example in found:
            assert example.printed
            assert example.run(names) == example.printed


def test_the_page_on_writing_names_everything_public() -> None:
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "writing.md").read_text(encoding="utf-8")))
    errors = {error.__name__ for error in (ProduceError, *ProduceError.__subclasses__())}
    assert named >= {*txnkafka.log.__all__, *errors}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", *(f"docs/internals/{each}.md" for each in MAPPED_ROOMS)])
def test_a_map_names_files_that_exist(page: str) -> None:
    roots = ROOT / "txnkafka", ROOT / "tests"
    files = [path.relative_to(ROOT) for root in roots for path in root.rglob("*.p*")]
    known = {each for path in files for each in (str(path), str(path).removeprefix("txnkafka/"), path.name)}
    named = set(re.findall(r"[`/(]([\w/]+\.(?:py|pyx|pxd))\b", (ROOT / page).read_text(encoding="utf-8")))
    assert named
    assert named - known == set()
