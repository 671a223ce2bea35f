"""The examples of docs/python.md and docs/writing.md run, and print what the pages show."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

import txnkafka.log
from tests.pages import ROOT, examples
from txnkafka.errors import ProduceError


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
